"""Consensus on Cassandra when answers get lost: what a transaction has become is found out, never guessed.

The contract itself is tested against a real Cassandra, in ``tests/system``.
"""

import re
from collections import deque
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from cassandra import ConsistencyLevel, OperationTimedOut, WriteTimeout, WriteType
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage
from cassandra.query import BatchStatement, SimpleStatement

from tidemark.consensus.lightweight import ATTEMPTS, LightweightConsensus, create_schema
from tidemark.consensus.objects import Change, Kind, ObjectKey, Outpaced

pytestmark = pytest.mark.unit

KEY = ObjectKey(Kind.LOG, "orders")
MINE = Change({"head": "mine"})
SOMEBODY = UUID(int=7)

WRITE_TIMEOUT = WriteTimeout("no answer", write_type=WriteType.CAS, consistency=ConsistencyLevel.SERIAL)
CLIENT_TIMEOUT = OperationTimedOut({"127.0.0.1": "no answer"}, "127.0.0.1")
NO_HOST = NoHostAvailable("all hosts failed", {"127.0.0.1": "connection lost"})
CAS_WRITE_UNKNOWN = ErrorMessage(0x1700, "CAS operation result is unknown", None)
"""Protocol 5's answer to a transaction that may have been applied; the driver has no class for it."""

LOST_ANSWERS = pytest.mark.parametrize(
    "error",
    [
        pytest.param(WRITE_TIMEOUT, id="write timeout"),
        pytest.param(CLIENT_TIMEOUT, id="client timeout"),
        pytest.param(NO_HOST, id="connection lost"),
        pytest.param(CAS_WRITE_UNKNOWN, id="result unknown"),
    ],
)


class Rows(list):
    """What the driver gives back."""

    was_applied = True

    def one(self):
        return self[0] if self else None


class Partition:
    """A session with one object behind it. Each transaction meets the next of the fates given."""

    def __init__(self, *fates):
        self.version, self.last_tx, self.rows = 3, SOMEBODY, {"head": "old"}
        self.fates = deque(fates)
        self.attempts: list[UUID] = []
        self.batches: list[BatchStatement] = []
        self.reads: list[SimpleStatement] = []
        self.executed: list[str] = []

    def prepare(self, query):
        return SimpleStatement(query.replace("?", "%s"))

    def execute(self, statement, values=()):
        if isinstance(statement, str):
            self.executed.append(statement)
            return Rows()
        if isinstance(statement, BatchStatement):
            self.batches.append(statement)
            self.attempts.append(UUID(re.search(r"last_tx = ([0-9a-f-]{36})", str(texts(statement)))[1]))
            return self.fates.popleft()(self)
        self.reads.append(statement)
        if "DISTINCT" in statement.query_string:
            return Rows([SimpleNamespace(version=self.version, last_tx=self.last_tx)])
        asked = values[2]
        return Rows(
            SimpleNamespace(row=row, body=body, version=self.version)
            for row, body in self.rows.items()
            if row in asked
        )


def texts(batch: BatchStatement) -> list[str]:
    """The statements of a batch, values filled in."""
    return [text for _, text, _ in batch._statements_and_parameters]


def applied(partition: Partition) -> Rows:
    partition.version, partition.last_tx, partition.rows = 4, partition.attempts[-1], {"head": "mine"}
    return Rows()


def not_applied(partition: Partition) -> Rows:
    rows = Rows()
    rows.was_applied = False
    return rows


def lost(error: Exception):
    """The transaction did not reach Cassandra, and nobody said so."""

    def fate(partition: Partition):
        raise error.with_traceback(None)

    return fate


def applied_but_lost(error: Exception):
    def fate(partition: Partition):
        applied(partition)
        raise error.with_traceback(None)

    return fate


def overtaken_and_lost(error: Exception, rows: dict[str, str]):
    """Somebody else's transaction came after, or instead of, this one."""

    def fate(partition: Partition):
        partition.version, partition.last_tx, partition.rows = 5, uuid4(), rows
        raise error.with_traceback(None)

    return fate


def test_a_transaction_that_was_applied_gives_the_next_version():
    assert LightweightConsensus(Partition(applied)).commit(KEY, 3, MINE) == 4


def test_a_transaction_that_was_not_applied_is_outpaced():
    with pytest.raises(Outpaced) as refusal:
        LightweightConsensus(Partition(not_applied)).commit(KEY, 2, MINE)
    assert (refusal.value.key, refusal.value.expected, refusal.value.found) == (KEY, 2, 3)


def test_a_transaction_that_was_not_applied_is_not_tried_again():
    partition = Partition(not_applied)
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 2, MINE)
    assert len(partition.attempts) == 1


@LOST_ANSWERS
def test_an_answer_lost_after_it_was_applied_is_a_success(error):
    partition = Partition(applied_but_lost(error))
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4
    assert len(partition.attempts) == 1


@LOST_ANSWERS
def test_an_answer_lost_before_it_was_applied_is_tried_again(error):
    partition = Partition(lost(error), applied)
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4
    assert partition.rows == {"head": "mine"}


def test_every_attempt_has_an_id_of_its_own():
    partition = Partition(lost(WRITE_TIMEOUT), lost(CLIENT_TIMEOUT), applied)
    LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(set(partition.attempts)) == 3


@LOST_ANSWERS
def test_an_answer_lost_while_somebody_else_went_on_is_outpaced(error):
    partition = Partition(overtaken_and_lost(error, {"head": "theirs"}))
    with pytest.raises(Outpaced) as refusal:
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert (refusal.value.expected, refusal.value.found) == (3, 5)


def test_an_answer_lost_before_somebody_else_built_on_it_is_a_success():
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {"head": "mine", "later": "theirs"}))
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


def test_only_some_of_the_rows_are_not_a_success():
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {"head": "mine", "t/1": "theirs"}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 3, Change({"head": "mine", "t/1": "mine too"}))


def test_a_row_that_should_be_gone_and_is_not_is_not_a_success():
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {"head": "mine", "gone": "still there"}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 3, Change({"head": "mine"}, deletes=["gone"]))


def test_removals_alone_prove_nothing_when_overtaken():
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 3, Change(deletes=["head"]))


def test_a_transaction_that_the_driver_sent_twice_is_a_success():
    """The driver asks the next host when a connection breaks: that one says "not applied"."""

    def sent_twice(partition: Partition) -> Rows:
        applied(partition)
        return not_applied(partition)

    assert LightweightConsensus(Partition(sent_twice)).commit(KEY, 3, MINE) == 4


def test_after_the_last_attempt_the_error_of_the_driver_comes_through():
    partition = Partition(*[lost(WRITE_TIMEOUT)] * ATTEMPTS)
    with pytest.raises(WriteTimeout):
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(partition.attempts) == ATTEMPTS


def test_the_last_attempt_is_looked_after_too():
    partition = Partition(*[lost(WRITE_TIMEOUT)] * (ATTEMPTS - 1), applied_but_lost(WRITE_TIMEOUT))
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


def test_an_error_of_another_kind_comes_through_at_once():
    partition = Partition(lost(RuntimeError("a defect")))
    with pytest.raises(RuntimeError):
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(partition.attempts) == 1


def test_a_transaction_is_one_batch_with_the_condition_first():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 3, Change({"head": "mine"}, deletes=["gone"]))
    condition, put, delete = texts(partition.batches[0])
    assert condition.startswith("UPDATE tidemark.object SET version = 4")
    assert condition.endswith("IF version = 3")
    assert put.startswith("INSERT INTO tidemark.object")
    assert delete.startswith("DELETE FROM tidemark.object")


def test_a_first_version_is_on_condition_that_there_is_none():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 0, MINE)
    assert texts(partition.batches[0])[0].endswith("IF version = NULL")


def test_a_transaction_is_serial_over_all_data_centres():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert partition.batches[0].serial_consistency_level == ConsistencyLevel.SERIAL


def test_every_read_is_serial():
    partition = Partition(lost(WRITE_TIMEOUT), applied)
    consensus = LightweightConsensus(partition)
    consensus.read(KEY, ["head", "missing"])
    consensus.scan(KEY, "t/")
    consensus.commit(KEY, 3, MINE)
    assert {read.consistency_level for read in partition.reads} == {ConsistencyLevel.SERIAL}


def test_the_keyspace_has_the_replication_asked_for():
    partition = Partition()
    create_schema(partition, {"class": "NetworkTopologyStrategy", "dc1": "3"})
    assert partition.executed[0] == (
        "CREATE KEYSPACE IF NOT EXISTS tidemark "
        "WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': '3'}"
    )
