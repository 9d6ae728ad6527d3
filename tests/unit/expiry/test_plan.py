"""The plan, the ceiling, and the report."""

from datetime import date

import pytest

from tidemark.expiry.days import WaitsFor
from tidemark.expiry.decision import LeftAlone
from tidemark.expiry.errors import TooManyPurges
from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.expiry.plan import Expired, make_plan, refuse_too_many
from tidemark.expiry.report import Spared, make_report, report_lines
from tidemark.journal.head import Head

pytestmark = pytest.mark.unit

FIRST, SECOND, THIRD = (date(2026, 11, day) for day in (1, 2, 3))


def expired(key: str, day: date = FIRST) -> Expired:
    return Expired(day, "orders", key, 0, 1, 2)


def test_an_expired_entity_counts_the_events_it_still_has() -> None:
    head = Head(5, 2, 10, 10_000, 7, 4, 0, 0, None, FIRST)
    assert Expired.of("orders", "k", FIRST, head) == Expired(FIRST, "orders", "k", 2, 10, 3)
    assert Expired.of("orders", "k", FIRST, head._replace(delete_to=None)).rows == 7
    assert Expired.of("orders", "k", FIRST, head._replace(delete_to=9)).rows == 0


def test_a_plan_has_every_day_the_total_and_the_first_entities() -> None:
    plan = make_plan(
        "orders", "cassandra", [FIRST, SECOND, THIRD], [expired("b"), expired("c", THIRD), expired("a")], 2
    )
    assert plan.days == ((FIRST, 2), (SECOND, 0), (THIRD, 1))
    assert (plan.total, [one.key for one in plan.first]) == (3, ["a", "b"])
    assert list(plan.to_lines()) == [
        "orders/cassandra: 3 expired entities on 3 days",
        "  2026-11-01  2",
        "  2026-11-02  0",
        "  2026-11-03  1",
        "  2026-11-01  orders/a  2 events",
        "  2026-11-01  orders/b  2 events",
        "  … and 1 more",
    ]
    assert plan.to_dict()["days"] == {"2026-11-01": 2, "2026-11-02": 0, "2026-11-03": 1}


def test_a_plan_at_the_ceiling_passes_and_one_above_is_refused() -> None:
    plan = make_plan("orders", "cassandra", [FIRST], [expired("a"), expired("b")])
    refuse_too_many(plan, 2)
    with pytest.raises(TooManyPurges) as refused:
        refuse_too_many(plan, 1)
    assert (refused.value.total, refused.value.ceiling) == (2, 1)
    assert "Nothing was sent." in str(refused.value)


def test_a_report_adds_up() -> None:
    sent = [SentPurge("orders", key, FIRST, 0, 5, 6, 3) for key in "ab"]
    spared = [
        Spared(SECOND, "orders", "d", LeftAlone.APPEND, 9),
        Spared(SECOND, "orders", "c", LeftAlone.APPEND),
        Spared(FIRST, "orders", "e", LeftAlone.GONE),
    ]
    days = {FIRST: None, SECOND: WaitsFor.ENTITIES, THIRD: WaitsFor.SOURCE}
    report = make_report("orders", "cassandra", "run", days, sent, spared, shown=2)
    assert (report.purged, report.left_alone, report.rows) == (2, 3, 6)
    assert report.unfinished == (SECOND, THIRD)
    assert [one.key for one in report.spared] == ["e", "c"]
    assert report.to_dict()["left_alone"] == {"its head is gone": 1, "a newer append": 2}
    assert report.to_dict()["days"][1] == {
        **{"day": "2026-11-02", "found": 2, "purged": 0, "left_alone": 2},
        "asked_again": "entities are left that expired on it",
    }
    assert list(report_lines(report.to_dict())) == [
        "orders/cassandra: 2 entities purged with 6 events, 3 left alone",
        "  2026-11-01  2 purged, 1 left alone",
        "  2026-11-02  0 purged, 2 left alone; asked again: entities are left that expired on it",
        "  2026-11-03  0 purged, 0 left alone; asked again: the source is not bound up to its end",
        "  left alone 1: its head is gone",
        "  left alone 2: a newer append",
    ]


def test_documents_give_back_what_they_were_made_of() -> None:
    sent = SentPurge("orders", "a", FIRST, 0, 5, 6, 3)
    spared = Spared(SECOND, "orders", "d", LeftAlone.APPEND, 9, 1, 2)
    assert SentPurge.from_dict(sent.to_dict()) == sent
    assert Spared.from_dict(spared.to_dict()) == spared
