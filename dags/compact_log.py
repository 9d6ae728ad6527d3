"""Compact a commit log: take out what later messages made obsolete, below every writer's position.

### What it does

`plan` looks at every message below the watermark and shows, segment by segment, what would go and why, who
holds the watermark back and by how much, and the oldest purged entity whose data is still in the log.
`compact` writes the files in which something goes anew, without it; `verify` proves that they hold every
message that stays and nothing else; `publish` makes them the log in one step; `sweep` removes files that
nobody names any more, when their grace time is over. Reading, capture and delivery go on all the time. A run
with nothing to gain starts no Spark and ends in seconds.

### Parameters

`dry_run`: only show the plan; on unless you switch it off. Runs on schedule are never dry.
`approve`: wait for a person to approve the plan before anything is written.
`policy`: another policy than the pipeline's, for this run.

### When it fails, and repairs itself

Nothing is visible before `publish`, and every task may be repeated: the same plan gives the same files. A run
that died is taken up by its retry or replaced by the next run; its files are swept. What capture publishes
meanwhile stays in the log. Positions and gates are never touched.

### When a person must step in

When a file of the log is missing or damaged, or the proof fails: the log is as it was; see
`tidemark log verify`. When the plan waits for approval under *Required Actions*. A plan is refused when a
writer went back or an id was pinned since it was made: run it again. When a writer that is gone holds the
watermark back: `tidemark offsets forget`.

### What it returns

`plan`: the whole plan. `publish`: messages and bytes before and after, bytes written. `sweep`: what was
removed and what waits. `tidemark log` keeps the history of compactions, with refusals and their reasons.
"""

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.kinds import POLICIES, compacting_policies
from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.asking import Approval
from tidemark_airflow.compaction import (
    HOLDER,
    MESSAGES,
    PLAN,
    POLICY,
    STEP,
    PlanOperator,
    decide,
    follow_approval,
    publish,
    sweep,
)
from tidemark_airflow.house import START, Tag, data_intervals, plan_params, task_defaults
from tidemark_airflow.spark_app import SparkAppOperator

SHOWN = "{{ ti.xcom_pull(task_ids='plan')['%s'] }}"


def compact_log(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    compaction = pipeline.log.compaction
    keeps_all = POLICIES.find(compaction.policy).keeps_everything
    with DAG(
        dag_id=f"{pipeline.name}.compact_log",
        dag_display_name=f"{pipeline.name}: compact the log",
        description="Obsolete messages leave the commit log: a plan first, a proof before the swap",
        doc_md=__doc__,
        schedule=None if keeps_all else data_intervals(compaction.schedule),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        params={
            **plan_params(),
            "policy": Param(
                None,
                type=["null", "string"],
                enum=[None, *compacting_policies()],
                description="Another policy than the pipeline's, for this run.",
            ),
        },
        tags=[Tag.TIDEMARK, Tag.COMPACTION, pipeline.name],
    ) as dag:
        plan = PlanOperator(
            task_id="plan",
            pipeline=pipeline.name,
            app="compact_log",
            arguments=["--step", STEP, "--holder", HOLDER, "--policy", POLICY],
            conn_id=pipeline.spark.connection,
            doc_md="Show what would go and why; look at every message below the watermark.",
        )
        decided = decide(pipeline.name, plan.output)
        approve = HITLOperator(
            task_id="approve",
            subject=f"{pipeline.name}: {SHOWN % 'dropped'} messages are to leave the log",
            body=f"Policy {SHOWN % 'policy'}, below id {SHOWN % 'watermark'}: from {SHOWN % 'bytes_before'} "
            f"to about {SHOWN % 'bytes_after'} bytes. The whole plan is in the log of the task `plan`.",
            options=[answer.value for answer in Approval],
            execution_timeout=None,
            doc_md="Ask a person to approve the plan.",
        )
        approved = follow_approval(pipeline.name, approve.output)
        compact = SparkAppOperator(
            task_id="compact",
            pipeline=pipeline.name,
            app="compact_log",
            arguments=["--step", "write", "--plan", PLAN, "--holder", HOLDER, "--policy", POLICY],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
            doc_md="Write the files of the plan anew; nobody can see them yet.",
        )
        verify = SparkAppOperator(
            task_id="verify",
            pipeline=pipeline.name,
            app="compact_log",
            arguments=["--step", "verify", "--plan", PLAN, "--holder", HOLDER, "--policy", POLICY],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            doc_md="Prove that the new files hold every message that stays, and nothing else.",
        )
        published = publish(pipeline.name, plan.output)
        decided >> [approve, compact, published]
        approved >> compact >> verify >> published >> sweep(pipeline.name)
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_compact_log"] = compact_log(declared)
