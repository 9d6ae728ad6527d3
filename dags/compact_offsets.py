"""Compact the offset logs of a pipeline's writers: plan, compact, verify.

### What it does

Every move of a writer's position is an entry of its offset log. `plan` counts the entries of this pipeline's
writers with Spark, also of writers that are in no file any more, and says which can go: all but the newest
entry and the rewinds. `compact` removes them, in one conditional transaction per writer; positions, gates,
leases and the last ids of namespaces are compared before and after. `verify` looks once more.
A writer may be working meanwhile. All pipelines at once: `tidemark offsets compact`.

### Parameters

`dry_run`: only show the plan. True for a run that you trigger, unless you say otherwise; a scheduled run
always compacts.

### When it fails, and repairs itself

Every task may be repeated at any time: a plan stays right whoever commits meanwhile, and what is removed
already is nothing to do. One writer's trouble holds up no other, and none of it holds up a delivery. Tasks
are retried twice; what is left is removed by the next run.

### When a person must step in

When a writer's offset log does not end where the writer stands, or something that stays is gone: nothing more
is removed, and the message names the writer. Look at it with `tidemark offsets list`.

### What it returns

`plan`: per writer, entries and bytes before and after, the rewinds, and what is removed.
`compact`: the same, with whether it was done. `verify`: writers, rows and bytes removed.
"""

from airflow.sdk import DAG, Param

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.house import START, Tag, data_intervals, task_defaults
from tidemark_airflow.offsets import compact, verify
from tidemark_airflow.spark_app import SparkAppOperator


def compact_offsets(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    with DAG(
        dag_id=f"{pipeline.name}.compact_offsets",
        dag_display_name=f"{pipeline.name}: compact offsets",
        description="Drop entries of the writers' offset logs that newer ones made obsolete",
        doc_md=__doc__,
        schedule=data_intervals("@daily"),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        params={
            "dry_run": Param(
                True, type="boolean", description="Only show the plan; a scheduled run always compacts."
            )
        },
        tags=[Tag.TIDEMARK, Tag.COMPACTION, pipeline.name],
    ) as dag:
        plan = SparkAppOperator(
            task_id="plan",
            pipeline=pipeline.name,
            app="compact_offsets",
            conn_id=pipeline.spark.connection,
            doc_md="Count the entries of every writer, and say which can go.",
        )
        verify(pipeline.name, compact(pipeline.name, plan.output))
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_compact_offsets"] = compact_offsets(declared)
