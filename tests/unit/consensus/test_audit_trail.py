"""The audit trail: one value, written with the names that stored rows have, and read from rows of before."""

import json

import pytest

from tidemark.consensus.audit_trail import AuditEntry, AuditFormat
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ABSENT, Change, ObjectKey, ObjectKind
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import is_forgetting
from tidemark.log.state.control import LogControl
from tidemark.log.state.forgotten import EndedRemoval, forgettings
from tidemark.log.state.pins import Pin, add_pin, release_pin, releases
from tidemark.work.store.registry import Registry

pytestmark = pytest.mark.unit

ANN = AuditEntry("rewind", "ann", "one row was wrong", 7_000)
LOG = ObjectKey(ObjectKind.LOG, "orders")
WRITER = ObjectKey(ObjectKind.WRITER, "orders/archive")
DEEDS = ObjectKey(ObjectKind.WORK_JOURNAL, "pages/deeds")


def given_row(key: ObjectKey, name: str, body: str) -> MemoryConsensus:
    """A control plane as the version before left it."""
    consensus = MemoryConsensus()
    consensus.commit(key, ABSENT, Change({name: body}))
    return consensus


def written(consensus: MemoryConsensus, key: ObjectKey, prefix: str) -> list[dict]:
    return [json.loads(body) for body in consensus.scan(key, prefix).rows.values()]


@pytest.mark.parametrize(
    "layout", [AuditFormat(), AuditFormat(about="keyspace"), AuditFormat(action="rewind")], ids=str
)
def test_what_is_written_is_read_back(layout: AuditFormat):
    assert layout.from_json(layout.to_json(ANN)) == ANN


def test_the_subject_has_the_name_that_its_rows_give_it():
    entry = AuditEntry("accept", "ann", "known", 7_000, "records are lost")
    row = AuditFormat(about="gate").to_row(entry, captured="c")
    assert row == {
        "what": "accept",
        "who": "ann",
        "reason": "known",
        "at": 7_000,
        "gate": "records are lost",
        "captured": "c",
    }


def test_an_action_that_the_kind_of_row_says_is_not_stored():
    layout = AuditFormat(action="unpin")
    assert layout.to_row(ANN) == {"who": "ann", "reason": "one row was wrong", "at": 7_000}
    assert layout.from_row({"who": "ann", "reason": "r", "at": 1}).what == "unpin"


# Rows as the version before wrote them


@pytest.mark.parametrize(
    ("body", "about"),
    [
        ('{"at": 9, "keyspace": "shop", "reason": "over", "what": "forget", "who": "ann"}', "shop"),
        ('{"at": 9, "keyspace": null, "reason": "over", "what": "forget", "who": "ann"}', None),
        ('{"at": 9, "reason": "over", "what": "forget", "who": "ann"}', None),
    ],
    ids=["with a keyspace", "without one", "of a version that did not keep it"],
)
def test_what_was_done_to_a_writer_is_read(body: str, about: str | None):
    consensus = given_row(WRITER, "audit/00000000000000000007", body)
    (deed,) = Positions(consensus, "orders").deeds("archive")
    assert deed == AuditEntry("forget", "ann", "over", 9, about)
    assert is_forgetting(deed)


@pytest.mark.parametrize("topics", [{}, {"topic_ids": {"orders": "a1"}}], ids=["older", "with topics"])
def test_what_was_decided_about_a_log_is_read(topics: dict):
    row = {"what": "forget", "who": "ann", "reason": "moved", "at": 9, "gate": "with its files", **topics}
    control = LogControl(given_row(LOG, "decision/00000000000000000009", json.dumps(row)), "orders")
    assert control.decisions() == [AuditEntry("forget", "ann", "moved", 9, "with its files")]
    assert forgettings(control) == [EndedRemoval(9, topics.get("topic_ids", {}))]


def test_a_capture_that_was_accepted_stays_so():
    body = (
        '{"captured": "c", "what": "accept", "who": "ann", "reason": "known", "at": 7,'
        ' "gate": "the audit failed", "topic_ids": {}}'
    )
    control = LogControl(given_row(LOG, "accepted/00000000000000001000", body), "orders")
    assert control.is_accepted(1_000, "c")


def test_a_pin_that_was_released_is_read():
    body = (
        '{"pin": {"id": 7, "who": "ann", "why": "evidence", "at": 1},'
        ' "who": "carol", "reason": "closed", "at": 5}'
    )
    control = LogControl(given_row(LOG, "unpinned/00000000000000000005", body), "orders")
    (released,) = releases(control)
    assert released.pin == Pin(7, "ann", "evidence", 1)
    assert released.by == AuditEntry("unpin", "carol", "closed", 5)


def test_what_was_done_to_a_work_journal_is_read():
    body = '{"what":"cancel k","who":"ann","reason":"größer","at":1700000000000}'
    consensus = given_row(DEEDS, "00000001700000000000/cancel k", body)
    assert Registry(consensus, "pages").deeds() == [
        AuditEntry("cancel k", "ann", "größer", 1_700_000_000_000)
    ]


# Rows as they are written


def test_a_writer_s_rows_have_their_names():
    consensus = MemoryConsensus()
    positions = Positions(consensus, "orders")
    positions.forget(
        positions.register("archive", {"keyspace": "shop"}), AuditEntry("forget", "ann", "over", 9)
    )
    assert written(consensus, WRITER, "audit/") == [
        {"what": "forget", "who": "ann", "reason": "over", "at": 9, "keyspace": "shop"}
    ]


def test_a_log_s_rows_have_their_names():
    consensus = MemoryConsensus()
    LogControl(consensus, "orders").keep_decision(AuditEntry("sweep", "ann", "space", 9, "3 files"))
    assert written(consensus, LOG, "decision/") == [
        {"what": "sweep", "who": "ann", "reason": "space", "at": 9, "gate": "3 files", "topic_ids": {}}
    ]


def test_a_released_pin_s_row_has_its_names():
    consensus = given_row(LOG, "head", '{"manifest": "m", "digest": "d", "t": 1, "end": 9}')
    control = LogControl(consensus, "orders")
    add_pin(control, Pin(7, "ann", "evidence", 1))
    release_pin(control, 7, "carol", "closed", 5)
    pin = {"id": 7, "who": "ann", "why": "evidence", "at": 1}
    assert written(consensus, LOG, "unpinned/") == [{"pin": pin, "who": "carol", "reason": "closed", "at": 5}]


def test_a_work_journal_s_rows_have_their_names():
    consensus = MemoryConsensus()
    Registry(consensus, "pages").note(AuditEntry("pause", "ann", "release", 5))
    assert consensus.scan(DEEDS, "").rows.keys() == {"00000000000000000005/pause"}
    assert written(consensus, DEEDS, "") == [{"what": "pause", "who": "ann", "reason": "release", "at": 5}]
