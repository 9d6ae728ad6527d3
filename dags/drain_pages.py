"""Do what is due in the work journal `pages`: an example of a DAG that drains a journal.

### What it does

`wait_for_work` waits, without holding a worker, until something is due. `render` claims up to `limit`
entries, smallest priority and earliest date first, and does them one after the other; claims are refreshed
while that takes its time. The handler here only prints what a real one would do: copy this file and put your
own there.

### Parameters

`limit`: how many entries one run takes at most.

### When it fails, and repairs itself

An entry that fails comes back after its back-off, the others of the run go on. Where the task is stopped,
what it has not done is given back at once. A worker that dies loses its claims after the time limit.

### When a person must step in

When an entry has become a dead letter: see `tidemark work dead pages`.

### What it returns

`render`: how many entries were done, failed, dead and lost.
"""

from typing import Any

from airflow.sdk import DAG, Param

from tidemark_airflow.house import START, Tag, task_defaults
from tidemark_airflow.work import ClaimWork, WorkReadySensor

JOURNAL = "pages"


def render(item: Any) -> None:
    """What a worker does with one entry; a real one has to bear being run again."""
    print(f"{item.key}: revision {item.payload['revision']} rendered")


with DAG(
    dag_id="work.drain_pages",
    dag_display_name="work: drain pages",
    description="Example: does what is due in the work journal pages",
    doc_md=__doc__,
    schedule=None,
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=task_defaults(),
    params={
        "limit": Param(
            100, type="integer", minimum=1, maximum=1000, description="How many entries a run takes at most."
        )
    },
    tags=[Tag.TIDEMARK, Tag.WORK],
) as dag:
    waited = WorkReadySensor(
        task_id="wait_for_work",
        journal=JOURNAL,
        doc_md="Wait until something is due.",
        execution_timeout=None,
    )
    waited >> ClaimWork(
        task_id="render",
        journal=JOURNAL,
        handler=render,
        limit="{{ params.limit }}",
        doc_md="Claim what is due, and do it.",
    )
