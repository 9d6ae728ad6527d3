"""What Airflow keeps of the plugin by name goes on working when modules move.

A task that waits is a row in Airflow's database: the path of its trigger's class, the trigger's arguments,
and the method of its sensor that is called in the end. A link is found by a name made from its class's. Rows
of earlier versions are read by later ones, so every line here stays; a new name gets a line of its own.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract, signature
from typing import Any

import pytest

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported

TRIGGERS: dict[str, dict[str, Any]] = {
    "tidemark_airflow.triggers.collected.CollectedTrigger": {
        **{"pipeline": "events", "writer": "objects", "every": 2.0},
        "ends": [[0, 41]],
    },
    "tidemark_airflow.triggers.follow.FollowTrigger": {
        "pipeline": "orders",
        "run_id": "scheduled__1",
        "every": 2.0,
    },
    "tidemark_airflow.gates.GateTrigger": {"pipeline": "orders", "writer": "journal", "every": 5.0},
    "tidemark_airflow.replicated.ReplicatedTrigger": {
        **{"pipeline": "orders", "writer": "journal", "every": 5.0},
        "offsets": [["orders", 0, 41]],
    },
    "tidemark_airflow.resume.TargetTrigger": {"pipeline": "orders", "writer": "journal"},
    "tidemark_airflow.triggers.soak.SoakTrigger": {
        **{"pipeline": "orders", "writer": "accounts", "every": 30.0},
        **{"number": 2, "until": 1_763_500_000_000_000},
    },
    "tidemark_airflow.work.WorkReadyTrigger": {"journal": "pages", "every": 30.0},
}
"""Column ``classpath`` of the table ``trigger``, and the arguments beside it."""
METHODS = {
    "CollectedSensor": "go_on",
    "FollowSensor": "go_on",
    "GateSensor": "go_on",
    "ReplicatedSensor": "go_on",
    "SoakSensor": "go_on",
    "TargetSensor": "go_on",
    "WorkReadySensor": "go_on",
}
"""Column ``next_method`` of a task instance that waits; the class itself comes from the DAG's file."""
LINKS = {
    "Audit results": "_link_AuditLink",
    "Differences": "_link_ReportLink",
    "Reconciliation": "_link_ReconcileLink",
}
"""In serialized DAGs: under which XCom the address of a link is."""
FUNCTIONS = ("tidemark.embedded.ports.loopback",)
"""In the environment of an Airflow that runs while the code below it is exchanged."""


@pytest.fixture(scope="module", autouse=True)
def _airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An Airflow that has a home of its own and no database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        yield


def imported(path: str) -> Any:
    """What a path leads to, as Airflow follows it."""
    module, name = path.rsplit(".", 1)
    return getattr(import_module(module), name)


def classes(kind: type) -> dict[str, type]:
    """The classes of the plugin that are of a kind, wherever they are."""
    import tidemark_airflow

    modules = [
        import_module(one.name)
        for one in pkgutil.walk_packages(tidemark_airflow.__path__, "tidemark_airflow.")
        if not one.ispkg
    ]
    found = (one for module in modules for one in vars(module).values() if isinstance(one, type))
    return {
        one.__name__: one
        for one in found
        if issubclass(one, kind) and one.__module__.startswith("tidemark_airflow.") and not isabstract(one)
    }


@pytest.mark.parametrize("path", TRIGGERS)
def test_a_stored_trigger_goes_on_as_the_class_that_is_used_today(path: str) -> None:
    trigger = imported(path)(**TRIGGERS[path])
    used, arguments = trigger.serialize()
    assert imported(used) is imported(path)
    assert arguments == TRIGGERS[path]


def test_every_trigger_of_the_plugin_is_among_the_stored_ones() -> None:
    from airflow.triggers.base import BaseTrigger

    assert set(classes(BaseTrigger).values()) == {imported(path) for path in TRIGGERS}


def test_sensors_still_have_the_method_that_ends_a_wait() -> None:
    from airflow.sdk import BaseSensorOperator

    sensors = classes(BaseSensorOperator)
    assert sensors.keys() == METHODS.keys()
    for name, method in METHODS.items():
        assert list(signature(getattr(sensors[name], method)).parameters) == ["self", "context", "event"]


def test_links_are_kept_under_the_names_that_they_have_always_had() -> None:
    from airflow.sdk import BaseOperatorLink

    links = [link() for link in classes(BaseOperatorLink).values()]
    assert {link.name: link.xcom_key for link in links} == LINKS


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_function_that_a_running_airflow_asks_for_is_still_there(path: str) -> None:
    assert callable(imported(path))
