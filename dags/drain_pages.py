"""Do the due entries of the work journal `pages`: an example of a DAG that drains a journal.

### What it does

`wait_for_work` waits, without holding a worker, until an entry is due. `render` claims up to `limit` entries,
smallest priority and earliest date first, and does them one after the other. Claims are renewed meanwhile.
The handler of this example only prints a line: copy the file and replace it with your own.

### Parameters

* `limit`: the most entries that one run claims.

### When it fails, and repairs itself

An entry that fails comes back after its back-off; the other entries of the run go on. When the task is
stopped, it gives back the entries that it has not done. The claims of a worker that was killed lapse after
the time limit.

### When a person must step in

When an entry has become a dead letter: see `tidemark work dead pages`.

### What it returns

* `render`: the number of entries done, failed, dead and lost.
"""

from typing import Any

from airflow.sdk import DAG, Param

from tidemark_airflow.dag_defaults import START, Tag, task_defaults
from tidemark_airflow.operators.claim_work import ClaimWork
from tidemark_airflow.sensors.work_ready import WorkReadySensor

JOURNAL = "pages"


def render(item: Any) -> None:
    """Do one entry. A real handler must be idempotent: an entry may be handed out again."""
    print(f"{item.key}: revision {item.payload['revision']} rendered")


with DAG(
    dag_id="work.drain_pages",
    dag_display_name="work: drain pages",
    description="Example: do the due entries of the work journal pages",
    doc_md=__doc__,
    schedule=None,
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=task_defaults(),
    params={
        "limit": Param(
            100, type="integer", minimum=1, maximum=1000, description="The most entries that one run claims."
        )
    },
    tags=[Tag.TIDEMARK, Tag.WORK],
) as dag:
    waited = WorkReadySensor(
        task_id="wait_for_work",
        journal=JOURNAL,
        doc_md="Wait until an entry is due.",
        execution_timeout=None,
    )
    waited >> ClaimWork(
        task_id="render",
        journal=JOURNAL,
        handler=render,
        limit="{{ params.limit }}",
        doc_md="Claim due entries, and do them.",
    )
