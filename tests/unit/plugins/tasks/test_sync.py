"""The tasks of a synchronisation with a dump."""

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from tests.support.airflow_context import given_context

from tidemark.oplog.sync.errors import DumpEmpty, TooManyDeletes
from tidemark.oplog.sync.verify import Verified

pytestmark = pytest.mark.unit

PLAN = {"run": "key", "t": 7, "corrections": 3, "deletes": 1, "dump": "dump.jsonl"}
PARAMS = {"dry_run": True, "approve": False, "max_deletes": "10%", "force": False, "reason": "drift"}


class Sync:
    """A synchronisation that keeps its calls; ``refuses`` is raised by its guard and its validation."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.refuses: Exception | None = None
        self.files = SimpleNamespace(diff=lambda *given: given)

    def validate(self, dump: str, start: str, show: Any, *, force: bool) -> Any:
        self.guard(dump, start, force=force)
        return SimpleNamespace(key="key", lines=2, start=12_000)

    def guard(self, *given: Any, **named: Any) -> None:
        self.calls.append((*given, named))
        if self.refuses:
            raise self.refuses

    def send(self, diff: Any, signed: Any) -> Any:
        self.calls.append((diff, signed))
        return SimpleNamespace(sent=2, overtaken=1, resent=0)

    def verify(self, diff: Any) -> Verified:
        return Verified(as_sent=2, changed_since=1)

    def report(self, *given: Any) -> Any:
        self.calls.append(given)
        return {"pipeline": "events", "corrections": 0}


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Any:
    from tidemark_airflow.tasks import sync

    sync.of_test = Sync()
    monkeypatch.setattr(sync, "open_sync", lambda pipeline: sync.of_test)
    return sync


def guard(tasks: Any, run_type: str = "manual", plan: dict[str, Any] = PLAN, **params: Any) -> list[str]:
    return tasks.guard.function("events", plan, **given_context(run_type, **PARAMS | params))


@pytest.mark.parametrize(
    ("params", "next_tasks"),
    [({}, []), ({"dry_run": False}, ["send"]), ({"dry_run": False, "approve": True}, ["approve"])],
)
def test_S20_a_run_by_hand_only_shows_its_plan_unless_that_is_switched_off(tasks, params, next_tasks):
    assert guard(tasks, **params) == next_tasks


def test_where_nothing_differs_nothing_is_approved_or_sent(tasks):
    assert guard(tasks, plan={**PLAN, "corrections": 0}, dry_run=False, approve=True) == ["report"]


def test_S19_too_many_deletes_fail_the_run_for_good(tasks):
    tasks.of_test.refuses = TooManyDeletes("events", 999, 1_000, 100)
    with pytest.raises(AirflowFailException, match="999 of 1,000"):
        guard(tasks, dry_run=False)


def test_S20_a_dry_run_shows_that_too_many_would_be_deleted(tasks, capsys):
    tasks.of_test.refuses = TooManyDeletes("events", 999, 1_000, 100)
    assert guard(tasks) == []
    assert "999 of 1,000" in capsys.readouterr().out


def test_a_limit_that_is_none_fails_the_run(tasks):
    with pytest.raises(AirflowFailException, match="many"):
        guard(tasks, max_deletes="many")


def test_R28_the_dump_and_its_start_are_parameters(tasks):
    context = given_context(**PARAMS, dump="dump.jsonl", start="newest")
    found = tasks.validate.function("events", **context)
    assert found == {"run": "key", "lines": 2, "start": 12_000}
    assert tasks.of_test.calls == [("dump.jsonl", "newest", {"force": False})]


def test_a_dump_that_is_refused_fails_the_run_for_good(tasks):
    tasks.of_test.refuses = DumpEmpty("dump.jsonl")
    with pytest.raises(AirflowFailException, match="no object"):
        tasks.validate.function("events", **given_context(**PARAMS, dump="dump.jsonl", start="newest"))


@pytest.mark.parametrize(
    ("results", "who"),
    [({}, "ann"), ({"approve": {"responded_by_user": {"name": "bob"}}}, "bob")],
)
def test_whose_decision_it_was_is_signed(tasks, results, who):
    context = given_context("manual", results, **PARAMS)
    assert tasks.send.function("events", PLAN, **context) == {"sent": 2, "overtaken": 1, "resent": 0}
    ((diff, signed),) = tasks.of_test.calls
    assert (diff, signed.who, signed.reason) == (("key", 7), who, "drift")


def test_the_objects_are_verified(tasks):
    found = tasks.verify.function("events", PLAN)
    assert found == {"as_sent": 2, "changed_since": 1, "missing": 0}


@pytest.mark.parametrize(
    ("results", "verified"),
    [({}, None), ({"verify": {"as_sent": 2, "changed_since": 1, "missing": 0}}, Verified(2, 1, 0))],
)
def test_the_report_says_what_was_verified(tasks, results, verified):
    tasks.report.function("events", PLAN, **given_context("manual", results, **PARAMS))
    assert tasks.of_test.calls == [("key", 7, verified)]
