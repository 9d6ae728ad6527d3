"""Dead letters of work journals: an asset event per journal, then a task that fails."""

from typing import Any

import pytest
from tests.support.airflow_context import given_context
from tests.support.contracts.work_world import WorkWorld, given_dead_letter

pytestmark = pytest.mark.unit


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> WorkWorld:
    """A journal with one dead letter; others do not answer."""
    return given_dead_letter(monkeypatch)


def find(*journals: str) -> tuple[dict[str, Any], list[str]]:
    """What ``find_dead`` returns, and the assets of its events."""
    from airflow.sdk import AssetAlias
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from tidemark_airflow.tasks.dead_letters import ALL_DEAD, find_dead

    events = OutletEventAccessors()
    found = find_dead.function([f"cassandra_default/work/{name}" for name in journals], outlet_events=events)
    return found, [event.dest_asset_key.name for event in events[AssetAlias(ALL_DEAD)].asset_alias_events]


def report(found: Any, swept: Any) -> None:
    from tidemark_airflow.tasks.dead_letters import report_dead

    report_dead.function(found, **given_context(results={"sweep": swept}))


def test_unseen_dead_letters_are_an_event_and_a_failure(journal):
    from airflow.sdk.exceptions import AirflowFailException

    found, events = find(journal.declared.name)
    assert events == [f"work.{journal.declared.name}.dead"]
    with pytest.raises(AirflowFailException, match="1 dead letter that no person has looked at"):
        report(found, {"journals": {}})


def test_a_journal_that_does_not_answer_hides_no_other(journal):
    found, events = find("unreachable", journal.declared.name)
    assert (len(events), len(found["problems"])) == (1, 1)


@pytest.mark.parametrize(("found", "swept"), [({"journals": [], "problems": []}, None), (None, {})])
def test_a_sweep_that_failed_is_reported(found, swept):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="see the log of"):
        report(found, swept)


def test_without_dead_letters_the_task_succeeds():
    assert report({"journals": [], "problems": []}, {"journals": {}}) is None
