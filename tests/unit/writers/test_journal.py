"""The journal writer around its tables: what is asked first, where it stops, when pointers move.

What the tables get for which actions is the fold's business and tested there; here the tables are lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from tests.unit.log.samples import given_binding, given_messages

from tidemark.connections import CassandraConnection
from tidemark.delivery.lease import LeaseLost
from tidemark.delivery.pipeline import JournalDeclaration
from tidemark.delivery.writer import BadMessage, Part, Writing, Written
from tidemark.journal.effect import Effect
from tidemark.writers import journal
from tidemark.writers.journal import JournalWriter

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 1, 7, 10))
APPEND = '{"append":{"range":{"from":%d,"to":%d},"payloadType":"json","metadata":{}}}'
DELETE, PURGE, MARK = '{"delete":{"to":3}}', '{"purge":{}}', '{"mark":{"id":"m"}}'
PAYLOAD = '{"events":[{"seqNr":%d,"tags":[]}]}'


@dataclass
class Tables:
    """What was written, in order, and how often the lease had been asked by then."""

    pointers: dict[tuple[str, int], int] = field(default_factory=dict)
    written: list[Effect] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def read_heads(self, topic: str, keys: Sequence[str]) -> dict[str, object]:
        return {}

    def write(self, effects: Sequence[Effect]) -> None:
        self.steps.append("write")
        self.written += effects

    def read_pointer(self, topic: str, partition: int) -> int | None:
        return self.pointers.get((topic, partition))

    def write_pointer(self, topic: str, partition: int, offset: int, at: int, write_time: int) -> None:
        self.steps.append(f"{topic}/{partition} to {offset} at {at}, {write_time}")
        self.pointers[topic, partition] = offset

    def check(self) -> None:
        self.steps.append("check")

    @property
    def offsets(self) -> list[int]:
        return [row.offset for effect in self.written for row in effect.rows]


class Lost:
    def check(self) -> None:
        raise LeaseLost("orders", "journal", "zombie")


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    tables = Tables()
    monkeypatch.setattr(journal, "connect", lambda connection: None)
    monkeypatch.setattr(journal, "JournalTables", lambda session, declared: tables)
    return tables


def writer(**keys: object) -> JournalWriter:
    declared = JournalDeclaration.model_validate({"name": "journal", "kind": "journal"} | keys, context={})
    connection = CassandraConnection(hosts=("127.0.0.1",))
    return JournalWriter("orders", declared, connection, "UTC")


def message(offset: int, header: str | None, key: str = "k", value: bytes | None = None) -> pa.RecordBatch:
    headers = [] if header is None else [("journal.action", header.encode())]
    return given_messages(BINDING, "orders", 1, {offset: value}, key=key.encode(), headers=headers)


def appended(offset: int, seq_nr: int, key: str = "k") -> pa.RecordBatch:
    return message(offset, APPEND % (seq_nr, seq_nr), key, (PAYLOAD % seq_nr).encode())


THREE = [appended(7, 1), appended(8, 2), appended(9, 3)]
PART = Part(BINDING, ())


def test_a_binding_is_one_part_for_every_kafka_partition(tables):
    first, second = object(), object()
    assert writer().cut(BINDING, [first, second]) == [Part(BINDING, (first,)), Part(BINDING, (second,))]


def test_every_action_is_written(tables):
    assert writer().write(PART, Writing(THREE, tables)).written == 3
    assert tables.offsets == [7, 8, 9]


def test_the_lease_is_asked_before_every_batch_of_writes(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    writer().write(PART, Writing(THREE, tables))
    assert tables.steps == ["check", "write"] * 3


def test_whoever_lost_the_writer_writes_nothing(tables):
    with pytest.raises(LeaseLost):
        writer().write(PART, Writing(THREE, Lost()))
    assert tables.written == []


def test_what_is_at_or_below_the_pointer_is_dropped(tables):
    tables.pointers["orders", 1] = 8
    assert writer().write(PART, Writing(THREE, tables)) == Written(1, ignored=2, details=_events(1))
    assert tables.offsets == [9]


def test_what_the_namespaces_keep_out_is_counted(tables):
    result = writer(namespaces="^inv").write(PART, Writing(THREE, tables))
    assert (result, tables.written) == (Written(filtered=3), [])


def test_a_message_that_is_no_action_is_finished_with(tables):
    assert writer().write(PART, Writing([message(7, None)], tables)).ignored == 1


def test_everything_below_a_bad_message_is_written(tables):
    messages = [appended(7, 1), message(8, "{"), appended(9, 2)]
    with pytest.raises(BadMessage) as wall:
        writer().write(PART, Writing(messages, tables))
    assert (wall.value.id, wall.value.offset, tables.offsets) == (104, 8, [7])


def test_a_message_that_cannot_be_applied_is_blamed_and_not_the_first_of_its_entity(tables):
    broken = message(9, APPEND % (3, 3), value=b"{")
    with pytest.raises(BadMessage) as wall:
        writer().write(PART, Writing([appended(7, 1), appended(8, 2), broken], tables))
    assert (wall.value.id, wall.value.offset, tables.offsets) == (105, 9, [7, 8])


def test_of_two_entities_the_lowest_bad_message_is_blamed(tables):
    one, other = message(9, APPEND % (3, 3), value=b"{"), message(8, APPEND % (1, 1), "j", b"{")
    with pytest.raises(BadMessage) as wall:
        writer().write(PART, Writing([appended(7, 1), other, one], tables))
    assert (wall.value.id, tables.offsets) == (104, [7])


def test_a_message_on_its_own_is_written_like_many(tables):
    single = Part(BINDING, (), first_id=104, last_id=104)
    writer().write(single, Writing([THREE[1]], tables))
    assert tables.offsets == [8]


def test_writing_moves_no_pointer(tables):
    writer().write(PART, Writing(THREE, tables))
    assert tables.pointers == {}


def test_finishing_moves_the_pointers_to_the_end_of_every_slice(tables):
    writer().finish(PART, Writing([], tables))
    assert tables.steps == [
        "check",
        "invoices/0 to 12 at 1000000, 1000002",
        "orders/1 to 9 at 1000000, 1000005",
    ]


def test_finishing_moves_no_pointer_of_a_topic_that_is_kept_out(tables):
    writer(namespaces="^inv").finish(PART, Writing([], tables))
    assert tables.pointers == {("invoices", 0): 12}


def test_whoever_lost_the_writer_moves_no_pointer(tables):
    with pytest.raises(LeaseLost):
        writer().finish(PART, Writing([], Lost()))
    assert tables.pointers == {}


@pytest.mark.parametrize(
    ("header", "refused"),
    [
        pytest.param(APPEND % (1, 1), False, id="append"),
        pytest.param(MARK, False, id="mark"),
        pytest.param(DELETE, True, id="delete"),
        pytest.param(PURGE, True, id="purge"),
        pytest.param("{", False, id="not understood"),
        pytest.param(None, False, id="no action"),
    ],
)
def test_what_may_be_applied_half_can_only_be_tried_again(header, refused):
    (record,) = message(7, header, value=(PAYLOAD % 1).encode()).to_pylist()
    assert (writer().refuses_acknowledgement(record) is not None) == refused


def _events(count: int) -> dict[str, int]:
    return {"events": count, "duplicates": 0}
