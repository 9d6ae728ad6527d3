"""The tasks of ``<pipeline>.compact_offsets`` after its plan: do what it says, then look at the result."""

from typing import Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowSkipException

from tidemark_airflow.asking import asking_a_person
from tidemark_airflow.gates import open_pipeline


def is_dry_run(run_type: str, dry_run: bool) -> bool:
    """Whether a run only shows its plan: never on schedule, else as the person asked for."""
    return dry_run and run_type != "scheduled"


@task(
    task_id="compact", doc_md="Remove what the plan names, one transaction per writer; nothing in a dry run."
)
def compact(pipeline: str, planned: dict[str, Any], **context: Any) -> list[dict[str, Any]]:
    """What was done, writer by writer."""
    from tidemark.delivery.state.offset_log import OffsetsNotCompacted, Outcome, carry_out
    from tidemark.delivery.state.offset_log_plan import OffsetPlan

    refused = [one["failure"] for one in planned["writers"] if one["failure"]]
    plans = [OffsetPlan.from_dict(one) for one in planned["writers"] if not one["failure"]]
    for plan in plans:
        print(Outcome(plan.pipeline, plan.writer, plan, executed=False).line)
    if is_dry_run(context["dag_run"].run_type, context["params"]["dry_run"]):
        raise AirflowSkipException(
            f"{pipeline}: a dry run; nothing was changed. Set dry_run to false to do it."
        )
    consensus = open_pipeline(pipeline).consensus
    outcomes = [carry_out(consensus, plan, execute=True) for plan in plans]
    if failures := refused + [outcome.failure for outcome in outcomes if outcome.failure]:
        raise OffsetsNotCompacted(failures)
    return [outcome.to_dict() for outcome in outcomes]


@task(
    task_id="verify", doc_md="Prove that what stays is there, what goes is gone and no position is another."
)
def verify(pipeline: str, compacted: list[dict[str, Any]]) -> dict[str, Any]:
    """What the run came to."""
    from tidemark.delivery.state.offset_log import verify_writer
    from tidemark.delivery.state.offset_log_plan import OffsetPlan

    positions = open_pipeline(pipeline).positions
    plans = [OffsetPlan.from_dict(one) for one in compacted if one["executed"]]
    for plan in plans:
        with asking_a_person():
            verify_writer(positions, plan)
    return {
        "writers": [plan.writer for plan in plans],
        "rows": sum(plan.removed for plan in plans),
        "bytes": sum(plan.bytes_before - plan.bytes_after for plan in plans),
    }
