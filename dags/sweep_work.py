"""Sweep the work journals: lapsed claims, expired entries, buckets, lost hints, statistics.

### What it does

`plan` shows what a sweep would do to every journal that exists, with or without a file, in the keyspaces that
the files name and in the default one. It is read-only. `sweep` then processes every entry:

* A claim whose time limit has passed becomes a waiting entry again, or a dead letter.
* Expired entries are removed.
* Buckets are sealed, and dropped as a whole once no entry is left in them.
* An entry whose hint is lost gets a new one.
* The last traces of keys whose last entry went a day ago are removed.

It may run beside active workers and beside itself. `find_dead` then finds dead letters that no person has
looked at. Each journal that has some gets an event of the asset `work.<journal>.dead`, which the asset alias
`work.dead` collects. `report_dead` fails while there are any, unless the journal declares `report_dead: warn`
or `never`.

### Parameters

* `journal`: only this one; left out, all of them.
* `dry_run`: only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule
  are never dry.

### When it fails, and repairs itself

Every task is idempotent: each change of an entry or a bucket is conditional, and any process that makes it
would make the same one. Tasks are retried twice. A journal that cannot be swept delays no other: `sweep`
fails after all others were swept.

### When a person must step in

When `sweep` fails because a file in `include/work` is refused: its log says where and why. When `report_dead`
fails: `tidemark work dead J --unseen` shows the dead letters with their errors. Once the cause is repaired,
`tidemark work redrive J` puts them back; `tidemark work seen J` records that they were inspected and may
stay. Both take a key, and need `--execute --reason`. The next run reports what is left; clearing `find_dead`
checks at once.

### What it returns

* `sweep`: per journal, the number of hints read, claims lapsed, entries expired, dead letters, hints restored
  and keys removed, the steps of its buckets, and a census of its entries.
* `find_dead`: per journal, the number of dead letters that are not marked as seen and the newest of them,
  without payloads; the events of the assets carry the same.
"""

from airflow.sdk import DAG, Param

from tidemark_airflow.dag_defaults import START, Tag, data_intervals, task_defaults
from tidemark_airflow.dry_run import dry_run_param
from tidemark_airflow.operators.sweep_work import SweepWorkOperator
from tidemark_airflow.tasks.dead_letters import find_dead, report_dead
from tidemark_airflow.tasks.sweep_work import is_wanted, plan

with DAG(
    dag_id="work.sweep",
    dag_display_name="work: sweep",
    description="Lapsed claims, expired entries, buckets and lost hints of all work journals",
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
        "dry_run": dry_run_param(),
    },
    tags=[Tag.TIDEMARK, Tag.WORK],
) as dag:
    planned = plan()
    swept = SweepWorkOperator(
        task_id="sweep",
        journals=planned,
        conn_id="spark_default",
        doc_md="Sweep every journal in one Spark application.",
    )
    found = find_dead(planned)
    is_wanted(planned) >> swept >> found
    report_dead(found)
