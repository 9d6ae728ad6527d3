"""Whether a run only shows its plan: one rule for all DAGs that have the parameter ``dry_run``."""

from typing import Any

from airflow.sdk import Param

DRY_RUN = (
    "Only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule are "
    "never dry."
)
"""The rule in one sentence, as the forms and the DAGs' pages say it."""
ON_SCHEDULE = frozenset({"scheduled", "asset_triggered"})
"""The run types that Airflow starts because of the DAG's own schedule, which may be a time or an asset."""
BY_ANOTHER_DAG = "operator_triggered"
"""The run type of ``TriggerDagRunOperator``: dry only where that operator's configuration asks for it."""


def is_dry_run(dag_run: Any, params: Any) -> bool:
    """Whether a run changes nothing: never on schedule, otherwise what the parameter says (by default true).

    A backfill gets its parameters from the configuration that it was created with.
    """
    if dag_run.run_type in ON_SCHEDULE:
        return False
    if dag_run.run_type == BY_ANOTHER_DAG:
        return bool((dag_run.conf or {}).get("dry_run", False))
    return bool(params["dry_run"])


def dry_run_param() -> Param:
    """The parameter ``dry_run``."""
    return Param(True, type="boolean", description=DRY_RUN)
