"""The tasks of ``<pipeline>.compact_log``: show the plan, ask a person, publish, sweep."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import TriggerRule, task

from tidemark_airflow.asking import asking_a_person, is_approved
from tidemark_airflow.gates import open_pipeline
from tidemark_airflow.spark_app import SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.compaction.compact import Compaction

HOLDER = "{{ dag.dag_id }} {{ run_id }}"
POLICY = "{{ params.policy or '' }}"
IS_DRY = "dag_run.run_type == 'manual' and params.dry_run"
STEP = "{{ 'look' if " + IS_DRY + " else 'plan' }}"
PLAN = "{{ ti.xcom_pull(task_ids='plan')['plan'] }}"
MESSAGES = "{{ ti.xcom_pull(task_ids='plan')['messages_before'] }}"


class PlanOperator(SparkAppOperator):
    """Makes the plan; shows it as a table and returns it as a document. Nothing to look at: no Spark."""

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """See ``SparkAppOperator``."""
        with asking_a_person():
            compaction = _compaction(self.pipeline, context["params"]["policy"])
            is_idle = compaction.is_idle()
        result = self._plan_here(compaction, context) if is_idle else super().execute(context)
        for line in result.pop("table"):
            self.log.info("%s", line)
        return result

    def _plan_here(self, compaction: "Compaction", context: "Context") -> dict[str, Any]:
        from tidemark.compaction.report import plan_document, plan_lines

        holder = _holder(context)
        with asking_a_person(), compaction.recording_refusals(holder):
            is_look = is_dry(context["dag_run"], context["params"])
            plan = compaction.look() if is_look else compaction.plan(holder)
        return {**plan_document(plan), "table": list(plan_lines(plan))}


def is_dry(dag_run: Any, params: Any) -> bool:
    """Whether a run only shows its plan: by hand unless the person says otherwise, never on schedule."""
    return bool(dag_run.run_type == "manual" and params["dry_run"])


@task.branch(task_id="decide", doc_md="Go on with the plan, ask a person first, or stop after showing it.")
def decide(pipeline: str, plan: dict[str, Any], **context: Any) -> list[str]:
    """The task to go on with."""
    dag_run, params = context["dag_run"], context["params"]
    if is_dry(dag_run, params):
        print(f"{pipeline}: this was a dry run; nothing was changed")
        return []
    if plan["nothing_to_do"]:
        print(
            f"{pipeline}: nothing to gain; {plan['held_back_by']} holds the watermark at {plan['watermark']}"
        )
        return ["publish"]
    if dag_run.run_type == "manual" and params["approve"]:
        # A person may take days. Until then writers may be rewound; the plan is checked again afterwards.
        _compaction(pipeline, params["policy"]).give_back(_holder(context))
        return ["approve"]
    return ["compact"]


@task.short_circuit(
    task_id="follow_approval",
    ignore_downstream_trigger_rules=True,
    doc_md="Go on only where the person approved the plan.",
)
def follow_approval(pipeline: str, answer: dict[str, Any]) -> bool:
    """Whether to go on."""
    return is_approved(pipeline, answer)


@task(
    task_id="publish",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    retries=5,  # a process that died keeps its lease for a minute
    doc_md="Make the new files part of the log, in one step; write the history.",
)
def publish(pipeline: str, plan: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What the compaction came to."""
    from tidemark.compaction.compact import Compacted
    from tidemark.compaction.report import compacted_document

    holder, compaction = _holder(context), _compaction(pipeline, context["params"]["policy"])
    began = int(context["dag_run"].start_date.timestamp() * 1_000_000)
    with asking_a_person(), compaction.recording_refusals(holder):
        done = compaction.publish(plan["plan"], holder, began)
    if isinstance(done, Compacted):
        document = compacted_document(done)
        print(f"{pipeline}: {done.bytes_before - done.bytes_after:,} bytes reclaimed")
        return document
    return {"pipeline": pipeline, "plan": done.digest, "nothing_to_do": True}


@task(task_id="sweep", doc_md="Remove files that nobody names any more, when their grace time is over.")
def sweep(pipeline: str, **context: Any) -> dict[str, Any]:
    """What was removed, and what has to wait."""
    from tidemark.log.files.parquet import LogFolder
    from tidemark.log.sweep import sweep_log

    opened = open_pipeline(pipeline)
    log = opened.pipeline.log
    grace = int(log.compaction.grace.total_seconds() * 1_000_000)
    with asking_a_person():
        swept = sweep_log(
            _compaction(pipeline, None).questions.control,
            LogFolder(pipeline, log.path),
            _holder(context),
            grace,
        )
    print(f"{pipeline}: {len(swept.removed)} files removed, {len(swept.waiting)} wait for their time")
    return {"removed": len(swept.removed), "bytes": swept.bytes, "waiting": len(swept.waiting)}


def _compaction(pipeline: str, policy: str | None) -> "Compaction":
    from tidemark.compaction.compact import Compaction
    from tidemark.compaction.engine import InProcess

    opened = open_pipeline(pipeline)
    return Compaction.open(opened.pipeline, opened.consensus, InProcess(), policy or None)


def _holder(context: Any) -> str:
    return f"{context['dag'].dag_id} {context['run_id']}"
