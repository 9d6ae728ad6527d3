"""The tasks of ``<pipeline>.compact_log`` after its plan: decide, approve, publish, merge, sweep, trim."""

from typing import Any

from airflow.sdk import TriggerRule, task

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed
from tidemark_airflow.operators.plan_compaction import holder_of, open_compaction
from tidemark_airflow.tasks.approval import is_approved

HOLDER = "{{ dag.dag_id }} {{ run_id }}"
POLICY = "{{ params.policy or '' }}"
PLAN = "{{ ti.xcom_pull(task_ids='plan')['plan'] }}"
MESSAGES = "{{ ti.xcom_pull(task_ids='plan')['messages_before'] }}"


@task.branch(
    task_id="decide", doc_md="Carry out the plan, ask for approval first, or end after it was shown."
)
def decide(pipeline: str, plan: dict[str, Any], **context: Any) -> list[str]:
    """The ids of the tasks that run next."""
    dag_run, params = context["dag_run"], context["params"]
    if is_dry_run(dag_run, params):
        print(f"{pipeline}: this was a dry run; nothing was changed")
        return []
    if plan["nothing_to_do"]:
        print(
            f"{pipeline}: nothing to gain; {plan['held_back_by']} holds the watermark at {plan['watermark']}"
        )
        return ["publish"]
    if dag_run.run_type == "manual" and params["approve"]:
        # An approval may take days. Writers may be rewound until then; the plan is checked again afterwards.
        open_compaction(pipeline, params["policy"]).give_back(holder_of(context))
        return ["approve"]
    return ["compact"]


@task.short_circuit(
    task_id="follow_approval",
    ignore_downstream_trigger_rules=True,
    doc_md="Go on only where the plan was approved.",
)
def follow_approval(pipeline: str, answer: dict[str, Any]) -> bool:
    """Whether to go on."""
    return is_approved(pipeline, answer)


@task(
    task_id="publish",
    trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    retries=5,  # the lease of a process that was killed expires after a minute
    doc_md="Make the new files part of the log in one step, and record the compaction.",
)
def publish(pipeline: str, plan: dict[str, Any], **context: Any) -> dict[str, Any]:
    """What the compaction achieved."""
    from tidemark.compaction.compact import Compacted
    from tidemark.compaction.report import compacted_document

    holder, compaction = holder_of(context), open_compaction(pipeline, context["params"]["policy"])
    began = int(context["dag_run"].start_date.timestamp() * 1_000_000)
    with no_retry_if_person_needed(), compaction.recording_refusals(holder):
        done = compaction.publish(plan["plan"], holder, began)
    if isinstance(done, Compacted):
        document = compacted_document(done)
        print(f"{pipeline}: {done.bytes_before - done.bytes_after:,} bytes reclaimed")
        return document
    return {"pipeline": pipeline, "plan": done.digest, "nothing_to_do": True}


@task(
    task_id="merge",
    retries=5,  # the lease of a process that was killed expires after a minute
    doc_md="Merge small files of the log's closed segments; no message is dropped.",
)
def merge(pipeline: str, **context: Any) -> dict[str, Any]:
    """How many files became how many."""
    from dataclasses import asdict

    from tidemark.compaction.merging.merge import Merging
    from tidemark.compaction.report import merge_line

    opened = open_pipeline(pipeline)
    log = opened.pipeline.log
    control = open_compaction(pipeline, None).questions.control
    with no_retry_if_person_needed():
        merged = Merging(control, log.path, log.segment_bytes).merge_all(holder_of(context))
    print(f"{pipeline}: {merge_line(merged).strip()}")
    return asdict(merged)


@task(task_id="sweep", doc_md="Remove files that the log no longer names, after their grace time.")
def sweep(pipeline: str, **context: Any) -> dict[str, Any]:
    """How many files were removed, and how many wait for the end of their grace time."""
    from tidemark.log.files.parquet import LogFolder
    from tidemark.log.sweep import sweep_log

    opened = open_pipeline(pipeline)
    log = opened.pipeline.log
    grace = int(log.compaction.grace.total_seconds() * 1_000_000)
    with no_retry_if_person_needed():
        swept = sweep_log(
            open_compaction(pipeline, None).questions.control,
            LogFolder(pipeline, log.path),
            holder_of(context),
            grace,
        )
    print(f"{pipeline}: {len(swept.removed)} files removed, {len(swept.waiting)} wait for their time")
    return {"removed": len(swept.removed), "bytes": swept.bytes, "waiting": len(swept.waiting)}


@task(
    task_id="trim",
    trigger_rule=TriggerRule.NONE_FAILED,  # also where there was nothing to compact, and in a dry run
    doc_md="Remove versions of collections that are older than their `keep`; a dry run shows the plan.",
)
def trim(pipeline: str, **context: Any) -> dict[str, Any]:
    """By collection: the first readable time, and what was removed of each rendition."""
    from tidemark.app.renditions.opened import WriterRenditions
    from tidemark.app.renditions.trim import Trimming, trimmed_document, trimmed_line

    opened, done = open_pipeline(pipeline), {}
    names = [writer.name for writer in opened.pipeline.writers if writer.removes_versions]
    is_dry = is_dry_run(context["dag_run"], context["params"])
    for name in names:
        renditions = WriterRenditions.of(opened, name)
        if renditions.store.load() is None:
            print(f"{pipeline}/{name}: nothing was delivered yet")
            continue
        with no_retry_if_person_needed():
            trimming = Trimming(renditions)
            if is_dry:
                plan = trimming.plan()
                done[name] = plan.to_dict()
                print(*plan.lines, sep="\n")
            else:
                trimmed = trimming.run()
                done[name] = dict(trimmed_document(trimmed))
                print(f"{pipeline}/{name}: {trimmed_line(trimmed)}; readable since {trimmed.since}")
    return done
