"""``tidemark journal expired``: what a person sees."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.memory_heads import DAY, MemoryHeads, given_head

from tidemark.expiry.decision import LeftAlone
from tidemark.expiry.heads import EntityHead
from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.expiry.report import Spared, make_report
from tidemark.expiry.state import settle_days

pytestmark = pytest.mark.unit


@pytest.fixture
def heads(control, monkeypatch) -> MemoryHeads:
    """What the command finds."""
    heads = MemoryHeads(
        EntityHead("orders", "b", given_head(seq_nr=2)),
        EntityHead("orders", "a", given_head()),
        EntityHead("strangers", "c", given_head()),
    )
    monkeypatch.setattr("tidemark.expiry.heads.JournalHeads", lambda _: heads)
    return heads


def test_the_entities_of_a_day(run, heads) -> None:
    ended = run("journal", "expired", "orders", "--on", "2026-11-16")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "orders/cassandra: 2 expired entities on 1 day",
        "  2026-11-16  2",
        "  2026-11-16  orders/a  1 events",
        "  2026-11-16  orders/b  2 events",
    ]
    assert heads.asked == [DAY]


def test_as_json_and_no_more_than_asked_for(run, heads) -> None:
    shown = json.loads(
        run("journal", "expired", "orders", "--on", "2026-11-16", "--limit", "1", "--json").out
    )
    assert (shown["total"], shown["days"], shown["timezone"]) == (2, {"2026-11-16": 2}, "UTC")
    assert shown["first"] == [
        {"day": "2026-11-16", "topic": "orders", "key": "a", "partition": 0, "offset": 0, "rows": 1}
    ]


def test_without_a_day_the_last_ones_that_are_over(run, heads) -> None:
    heads.entities.clear()
    ended = run("journal", "expired", "orders", "--days", "3")
    assert ended.code == 0
    assert "none of the days" in ended.out
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert len(heads.asked) == 3
    assert heads.asked[-1] >= yesterday - timedelta(days=1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["orders", "--on", "yesterday"], 2, "does not match the format", id="no date"),
        pytest.param(["ordres"], 1, "Did you mean `orders`?", id="no pipeline"),
        pytest.param(["orders", "--writer", "archive"], 1, "it has no journal archive", id="no journal"),
        pytest.param(["orders", "--days", "0"], 2, "--days", id="no days"),
    ],
)
def test_what_is_refused(run, heads, arguments: list[str], code: int, said: str) -> None:
    ended = run("journal", "expired", *arguments)
    assert ended.code == code
    assert said in ended.err
    assert heads.asked == []


def test_what_runs_came_to(run, control) -> None:
    assert run("journal", "expired", "orders", "--history").out == (
        "orders: no run of orders.purge_expired has ended yet\n"
    )
    spared = [Spared(DAY, "orders", "b", LeftAlone.APPEND)]
    sent = [SentPurge("orders", "a", DAY, 0, 0, 5, 3)]
    report = make_report("orders", "cassandra", "r1", {DAY: None}, sent, spared)
    settle_days(control, report, 1_794_000_000_000_000)
    assert run("journal", "expired", "orders", "--history").out.splitlines() == [
        "2026-11-06 21:20:00 UTC  r1",
        "  orders/cassandra: 1 entities purged with 3 events, 1 left alone",
        "    2026-11-16  1 purged, 1 left alone",
        "    left alone 1: a newer append",
    ]
    (shown,) = json.loads(run("journal", "expired", "orders", "--history", "--json").out)["runs"]
    assert (shown["run"], shown["purged"], shown["overtaken"]) == ("r1", 1, [])
