"""Compact the offset logs of a pipeline's writers: plan, compact, verify.

### What it does

Every move of a writer's position is an entry of its offset log. `plan` counts the entries of this pipeline's
writers with Spark, including writers that are in no file any more, and lists the removable ones: all but the
newest entry and the rewinds. `compact` removes them, in one conditional transaction per writer. It compares
positions, gates, leases and the last ids of namespaces before and after. `verify` reads the result once more.
Writers may be active meanwhile. For all pipelines at once: `tidemark offsets compact`.

### Parameters

* `dry_run`: only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule
  are never dry.

### When it fails, and repairs itself

Every task is idempotent: a plan stays valid when writers commit meanwhile, and entries that are already gone
need nothing. A failure for one writer delays no other writer and no delivery. Tasks are retried twice; the
next run removes what is left.

### When a person must step in

When a writer's offset log does not end at the writer's position, or an entry that should stay is gone:
nothing more is removed, and the message names the writer. Inspect it with `tidemark offsets list`.

### What it returns

* `plan`: per writer, entries and bytes before and after, the rewinds, and the entries to remove.
* `compact`: the same, with whether it was executed. `verify`: writers, rows and bytes removed.
"""

from airflow.sdk import DAG

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.dag_defaults import START, Tag, data_intervals, task_defaults
from tidemark_airflow.dry_run import dry_run_param
from tidemark_airflow.operators.spark_app import SparkAppOperator
from tidemark_airflow.tasks.compact_offsets import compact, verify


def compact_offsets(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    with DAG(
        dag_id=f"{pipeline.name}.compact_offsets",
        dag_display_name=f"{pipeline.name}: compact offsets",
        description="Remove entries of the writers' offset logs that newer ones made obsolete",
        doc_md=__doc__,
        schedule=data_intervals("@daily"),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        params={"dry_run": dry_run_param()},
        tags=[Tag.TIDEMARK, Tag.COMPACTION, pipeline.name],
    ) as dag:
        plan = SparkAppOperator(
            task_id="plan",
            pipeline=pipeline.name,
            app="compact_offsets",
            conn_id=pipeline.spark.connection,
            doc_md="Count the entries of every writer, and list those that can be removed.",
        )
        verify(pipeline.name, compact(pipeline.name, plan.output))
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_compact_offsets"] = compact_offsets(declared)
