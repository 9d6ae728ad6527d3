"""Keep the work journals in order: lapsed claims, expiries, buckets, lost hints, figures.

### What it does

`plan` says what a sweep would do to every journal that was created, with a file or without, in the keyspaces
that the files name and in the usual one; it changes nothing. `sweep` then looks at every entry: claims whose
time limit has passed are waiting again, or dead letters; what has expired is removed; buckets are sealed, and
disposed of as a whole when no entry is in them any more; an entry whose hint is lost gets a new one; nothing
is left of keys whose last entry went a day ago. It may run beside live workers and beside itself.
`find_dead` then looks for dead letters that no person has looked at; each journal that has some is an event
of the asset `work.<journal>.dead`, found under the asset alias `work.dead` too. `report_dead` fails while
there are any, unless the journal declares `report_dead: warn` or `never`.

### Parameters

`journal`: only this one; all of them when empty. `dry_run`: `sweep` too only says what it would do.

### When it fails, and repairs itself

Every step may be repeated at any time: each change of an entry or a bucket is the one that anybody else would
make, and is made once. Tasks are retried twice. A journal that cannot be swept holds up no other: `sweep`
fails when all others have been.

### When a person must step in

When `sweep` fails because a file in `include/work` is refused: its log says where and why. When `report_dead`
fails: `tidemark work dead J --unseen` shows the dead letters with their errors. Once the cause is gone
`tidemark work redrive J` puts them back; `tidemark work seen J` says that they were looked at and may stay.
Both take a key, and need `--execute --reason`. The next run reports what is left; clearing `find_dead` looks
again at once.

### What it returns

`sweep`: per journal, how many hints were looked at, claims lapsed, entries expired, dead letters, hints
written anew, keys forgotten, the steps of its buckets, and a census of its entries.
`find_dead`: per journal, how many dead letters no person has looked at and the newest of them, without
payloads; the events of the assets carry the same.
"""

from airflow.sdk import DAG, Param

from tidemark_airflow.house import START, Tag, data_intervals, task_defaults
from tidemark_airflow.work import SweepWorkOperator, is_wanted, plan
from tidemark_airflow.work_dead import find_dead, report_dead

with DAG(
    dag_id="work.sweep",
    dag_display_name="work: sweep",
    description="Lapsed claims, expiries, buckets and lost hints of all work journals",
    doc_md=__doc__,
    schedule=data_intervals("*/15 * * * *"),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=task_defaults(),
    params={
        "journal": Param(
            None,
            type=["null", "string"],
            pattern="^[A-Za-z0-9_-]+$",
            description="Only this journal; all of them when empty.",
        ),
        "dry_run": Param(False, type="boolean", description="Show the plan, and change nothing."),
    },
    tags=[Tag.TIDEMARK, Tag.WORK],
) as dag:
    planned = plan()
    swept = SweepWorkOperator(
        task_id="sweep",
        journals=planned,
        plans_only="{{ params.dry_run }}",
        conn_id="spark_default",
        doc_md="Sweep every journal in one Spark application.",
    )
    found = find_dead(planned)
    is_wanted(planned) >> swept >> found
    report_dead(found)
