"""Item 11: the tasks of ``work.sweep`` that find and report dead letters, with Airflow's own classes."""

from typing import Any

import pytest
from tests.support.contracts.work_world import WorkWorld, given_dead_letter

pytestmark = pytest.mark.system


@pytest.fixture
def house(dag_bag: Any, monkeypatch: Any) -> WorkWorld:
    """A journal in memory, with one dead letter."""
    return given_dead_letter(monkeypatch)


class Instance:
    def __init__(self, swept: Any) -> None:
        self._swept = swept

    def xcom_pull(self, task_ids: str) -> Any:
        assert task_ids == "sweep"
        return self._swept


def found(*journals: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the task returns, and the events it makes, by the names of their assets."""
    from airflow.sdk import AssetAlias
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from tidemark_airflow.tasks.dead_letters import ALL_DEAD, find_dead

    events = OutletEventAccessors()
    names = [f"cassandra_default/work/{journal}" for journal in journals]
    returned = find_dead.function(names, outlet_events=events)
    made = events[AssetAlias(ALL_DEAD)].asset_alias_events
    return returned, {event.dest_asset_key.name: event.extra for event in made}


def test_i11_unseen_dead_letters_are_an_asset_event_and_fail_the_task(house: WorkWorld) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemark_airflow.tasks.dead_letters import report_dead

    name = house.declared.name
    returned, events = found(name)
    assert events == {f"work.{name}.dead": returned["journals"][0]}
    assert (events[f"work.{name}.dead"]["count"], returned["problems"]) == (1, [])
    with pytest.raises(AirflowFailException, match="1 dead letter that no person has looked at"):
        report_dead.function(returned, ti=Instance({"journals": {}}))


def test_i11_seen_ones_are_neither(house: WorkWorld) -> None:
    from tidemark.work.client import Work
    from tidemark_airflow.tasks.dead_letters import report_dead

    work = Work.of_journal(house.another())
    work.mark_seen(*work.dead(), who="ann", reason="nothing to do")
    returned, events = found(house.declared.name)
    assert events == {}
    report_dead.function(returned, ti=Instance({"journals": {}}))


def test_a_journal_that_cannot_be_looked_at_hides_no_other(house: WorkWorld) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemark_airflow.tasks.dead_letters import report_dead

    returned, events = found("unreachable", house.declared.name)
    assert len(events) == 1
    with pytest.raises(AirflowFailException, match="unreachable: its dead letters could not be looked at"):
        report_dead.function(returned, ti=Instance({}))


def test_a_sweep_that_failed_does_not_end_as_a_success(house: WorkWorld) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemark_airflow.tasks.dead_letters import report_dead

    for given in ({"journals": [], "problems": []}, None):
        with pytest.raises(AirflowFailException, match="see the log of"):
            report_dead.function(given, ti=Instance(None))


def test_the_last_tasks_run_whatever_became_of_the_sweep(dag_bag: Any) -> None:
    dag = dag_bag.dags["work.sweep"]
    assert dag.get_task("sweep").downstream_task_ids == {"find_dead"}
    assert dag.get_task("find_dead").downstream_task_ids == {"report_dead"}
    assert [dag.get_task(name).trigger_rule for name in ("find_dead", "report_dead")] == ["all_done"] * 2


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ({"from_t": "2026-11-01", "to_t": "2026-11-02T12:00:00Z"}, (1_793_491_200, 1_793_620_800)),
        ({"from_t": 1_793_491_200_000_000, "to_t": None}, (1_793_491_200, None)),
        ({"from_t": None, "to_t": "1793491200000000"}, (0, 1_793_491_200)),
        ({"from_t": "2026-11-01T01:00+01:00", "to_t": None}, (1_793_491_200, None)),
    ],
)
def test_i22_times_of_bindings_may_be_dates(dag_bag: Any, given: dict[str, Any], time: Any) -> None:
    from tidemark_airflow.tasks.replicate import NEVER, again_interval

    begin, end = time
    wanted = (begin * 1_000_000, NEVER if end is None else end * 1_000_000)
    assert again_interval(None, given) == wanted


def test_i22_what_is_no_time_is_refused(dag_bag: Any) -> None:
    from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

    from tidemark_airflow.tasks.replicate import again_interval

    with pytest.raises(AirflowFailException, match="`2026-11-99` is no time"):
        again_interval(None, {"from_t": "2026-11-99", "to_t": None})
    parameter = dag_bag.dags["orders.replicate"].params.get_param("from_t")
    assert parameter.resolve("2026-11-01") == "2026-11-01"
    with pytest.raises(ParamValidationError):
        parameter.resolve("yesterday")
