"""The module paths that classes and functions had in the release before, kept importable for one release.

Airflow's database stores a trigger by its module path, so a task that was deferred before an upgrade is
resumed through the old path. DAGs of other authors import sensors and operators by path too. Remove this
module, with its call in ``__init__``, in the release after the next one.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGE = "tidemark_airflow"
MOVED = {
    "audit": {"AuditLink": "operators.audit", "AuditOperator": "operators.audit"},
    "gates": {
        "GateSensor": "sensors.gate",
        "GateTrigger": "triggers.gate",
        "WriterTrigger": "triggers.writer",
        "delivered_asset": "tasks.gates",
        "open_pipeline": "connections",
    },
    "house": {"Tag": "dag_defaults"},
    "reconcile": {"ReconcileLink": "operators.reconcile", "ReconcileOperator": "operators.reconcile"},
    "replicated": {"ReplicatedSensor": "sensors.replicated", "ReplicatedTrigger": "triggers.replicated"},
    "replicate": {"log_asset": "tasks.replicate"},
    "resume": {"TargetSensor": "sensors.target", "TargetTrigger": "triggers.target"},
    "spark_app": {"SparkAppOperator": "operators.spark_app"},
    "work": {
        "ClaimWork": "operators.claim_work",
        "SweepWorkOperator": "operators.sweep_work",
        "WorkReadySensor": "sensors.work_ready",
        "WorkReadyTrigger": "triggers.work_ready",
        "open_work": "connections",
    },
    "work_dead": {"dead_asset": "tasks.dead_letters"},
}
"""The old module, the names it had, and the modules that define them now; all below the package."""


class EarlierModule(ModuleType):
    """A module that is gone; its names are imported from their new modules on first use."""

    def __init__(self, name: str, moved: dict[str, str]) -> None:
        super().__init__(f"{PACKAGE}.{name}", f"Moved: see {PACKAGE}.earlier_paths.")
        self._moved = moved

    def __getattr__(self, name: str) -> Any:
        try:
            module = self._moved[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
        return getattr(import_module(f"{PACKAGE}.{module}"), name)


def install() -> None:
    """Make the old paths importable; calling it again changes nothing."""
    package = import_module(PACKAGE)
    for name, moved in MOVED.items():
        module = EarlierModule(name, moved)
        sys.modules.setdefault(module.__name__, module)
        setattr(package, name, sys.modules[module.__name__])
