"""Compact a commit log: remove messages that later messages made obsolete, below every writer's position.

### What it does

1. `plan` reads every message below the watermark. It logs, segment by segment, what would be removed and why,
   which writer holds the watermark back and by how much, and the oldest purged entity whose data is still in
   the log.
2. `compact` writes new files without the obsolete messages.
3. `verify` proves that the new files hold every message that stays, and nothing else.
4. `publish` makes them part of the log in one step.
5. `merge` merges small files of closed segments; no message is dropped by it.
6. `sweep` removes files that the log no longer names, after their grace time.
7. `trim`, where a collection has `keep`: removes versions that are older, as far as readers allow. With
   policy `none` it is the only task that runs.

Reading, capture and delivery go on meanwhile. A run with nothing to gain starts no Spark and ends in seconds.

### Parameters

* `dry_run`: only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule
  are never dry.
* `approve`: wait for a person to approve the plan before anything is written.
* `policy`: another policy than the pipeline's, for this run.

### When it fails, and repairs itself

Nothing is visible before `publish`, and every task is idempotent: the same plan gives the same files. A run
that was killed is continued by its retry or replaced by the next run, and its files are swept. Messages that
capture publishes meanwhile stay in the log. Positions and gates are never changed.

### When a person must step in

* A file of the log is missing or damaged, or the proof fails: the log is unchanged; see `tidemark log
  verify`.
* The plan waits for approval under *Required Actions*.
* The plan is refused because a writer was rewound or an id was pinned after it was made: run it again.
* A writer that is in no file any more holds the watermark back: `tidemark offsets forget`.

### What it returns

* `plan`: the whole plan. `publish`: messages and bytes before and after, bytes written. `merge`: the number
  of files before and after. `sweep`: the number of files removed and waiting. `trim`: by collection, the
  first readable time and what was removed. `tidemark log` shows the history of compactions, with refusals
  and their reasons.
"""

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.kinds import POLICIES, compacting_policies
from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.dag_defaults import START, Tag, data_intervals, plan_params, task_defaults
from tidemark_airflow.operators.plan_compaction import PlanCompactionOperator
from tidemark_airflow.operators.spark_app import SparkAppOperator
from tidemark_airflow.tasks.approval import Approval
from tidemark_airflow.tasks.compact_log import (
    HOLDER,
    MESSAGES,
    PLAN,
    POLICY,
    decide,
    follow_approval,
    merge,
    publish,
    sweep,
    trim,
)

SHOWN = "{{ ti.xcom_pull(task_ids='plan')['%s'] }}"


def compact_log(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    compaction = pipeline.log.compaction
    keeps_all = POLICIES.find(compaction.policy).keeps_everything
    trims = any(writer.removes_versions for writer in pipeline.writers)
    with DAG(
        dag_id=f"{pipeline.name}.compact_log",
        dag_display_name=f"{pipeline.name}: compact the log",
        description="Remove obsolete messages from the commit log: plan, rewrite, prove, publish",
        doc_md=__doc__,
        schedule=None if keeps_all and not trims else data_intervals(compaction.schedule),
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
        plan = PlanCompactionOperator(
            task_id="plan",
            pipeline=pipeline.name,
            app="compact_log",
            arguments=["--holder", HOLDER, "--policy", POLICY],
            conn_id=pipeline.spark.connection,
            is_optional=keeps_all and trims,
            doc_md="Read every message below the watermark; show what would be removed and why.",
        )
        decided = decide(pipeline.name, plan.output)
        approve = HITLOperator(
            task_id="approve",
            subject=f"{pipeline.name}: {SHOWN % 'dropped'} messages are to be removed from the log",
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
            doc_md="Write the new files of the plan; readers cannot see them yet.",
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
        swept = sweep(pipeline.name)
        approved >> compact >> verify >> published >> merge(pipeline.name) >> swept
        if trims:
            swept >> trim(pipeline.name)
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_compact_log"] = compact_log(declared)
