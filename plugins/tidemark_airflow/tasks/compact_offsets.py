"""The tasks of ``<pipeline>.compact_offsets`` after its plan: carry it out, then verify the result."""

from typing import Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowSkipException

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.dry_run import is_dry_run
from tidemark_airflow.failures import no_retry_if_person_needed


@task(
    task_id="compact",
    doc_md="Remove the entries that the plan names, one transaction per writer; skipped in a dry run.",
)
def compact(pipeline: str, planned: dict[str, Any], **context: Any) -> list[dict[str, Any]]:
    """The outcome for each writer."""
    from tidemark.delivery.state.offset_log import OffsetLogOutcome, OffsetsNotCompacted, carry_out
    from tidemark.delivery.state.offset_log_plan import OffsetPlan

    refused = [one["failure"] for one in planned["writers"] if one["failure"]]
    plans = [OffsetPlan.from_dict(one) for one in planned["writers"] if not one["failure"]]
    for plan in plans:
        print(OffsetLogOutcome(plan.pipeline, plan.writer, plan, executed=False).line)
    if is_dry_run(context["dag_run"], context["params"]):
        raise AirflowSkipException(
            f"{pipeline}: a dry run; nothing was changed. Set dry_run to false to do it."
        )
    consensus = open_pipeline(pipeline).consensus
    outcomes = [carry_out(consensus, plan, execute=True) for plan in plans]
    if failures := refused + [outcome.failure for outcome in outcomes if outcome.failure]:
        raise OffsetsNotCompacted(failures)
    return [outcome.to_dict() for outcome in outcomes]


@task(
    task_id="verify",
    doc_md="Verify that kept entries exist, removed entries are gone and positions are unchanged.",
)
def verify(pipeline: str, compacted: list[dict[str, Any]]) -> dict[str, Any]:
    """The writers whose offset logs were compacted, with the rows and bytes removed."""
    from tidemark.delivery.state.offset_log import verify_writer
    from tidemark.delivery.state.offset_log_plan import OffsetPlan

    positions = open_pipeline(pipeline).positions
    plans = [OffsetPlan.from_dict(one) for one in compacted if one["executed"]]
    for plan in plans:
        with no_retry_if_person_needed():
            verify_writer(positions, plan)
    return {
        "writers": [plan.writer for plan in plans],
        "rows": sum(plan.removed for plan in plans),
        "bytes": sum(plan.bytes_before - plan.bytes_after for plan in plans),
    }
