"""Consensus on Cassandra when answers get lost: what a transaction has become is found out, never guessed.

The contract itself is tested against a real Cassandra, in ``tests/system``.
"""

import re
from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from cassandra import (
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteFailure,
    WriteTimeout,
    WriteType,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.encoder import Encoder
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import ErrorMessage, ServerError, SyntaxException
from cassandra.query import BatchStatement, SimpleStatement, bind_params

from tidemark.consensus.lightweight import ATTEMPTS, LightweightConsensus, create_schema
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind, Outpaced, RowRange, Undecided

pytestmark = pytest.mark.unit

KEY = ObjectKey(ObjectKind.LOG, "orders")
MINE = Change({"head": "mine"})
ANOTHER = UUID(int=7)

WRITE_TIMEOUT = WriteTimeout("no answer", write_type=WriteType.CAS, consistency=ConsistencyLevel.SERIAL)
CLIENT_TIMEOUT = OperationTimedOut({"127.0.0.1": "no answer"}, "127.0.0.1")
NO_HOST = NoHostAvailable("all hosts failed", {"127.0.0.1": "connection lost"})
CAS_WRITE_UNKNOWN = ErrorMessage(0x1700, "CAS operation result is unknown", None)
"""Protocol 5's answer to a transaction that may have been applied; the driver has no class for it."""
READ_TIMEOUT = ReadTimeout("no answer", consistency=ConsistencyLevel.SERIAL)

LOST_ANSWERS = pytest.mark.parametrize(
    "error",
    [
        pytest.param(WRITE_TIMEOUT, id="write timeout"),
        pytest.param(CLIENT_TIMEOUT, id="client timeout"),
        pytest.param(NO_HOST, id="connection lost"),
        pytest.param(CAS_WRITE_UNKNOWN, id="result unknown"),
        pytest.param(WriteFailure("a replica failed", write_type=WriteType.CAS), id="write failure"),
        pytest.param(Unavailable("too few replicas"), id="unavailable"),
        pytest.param(ServerError(0x0000, "a defect of Cassandra", None), id="server error"),
        pytest.param(ConnectionShutdown("connection closed"), id="connection closed"),
    ],
)
REFUSALS = pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unauthorized("no MODIFY permission"), id="unauthorized"),
        pytest.param(InvalidRequest("unconfigured table"), id="invalid request"),
        pytest.param(SyntaxException(0x2000, "no viable alternative", None), id="syntax error"),
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
        self.version, self.last_tx, self.rows = 3, ANOTHER, {"head": "old"}
        self.fates = deque(fates)
        self.read_errors: deque[Exception | None] = deque()
        self.attempts: list[UUID] = []
        self.sent: list[tuple[BatchStatement | SimpleStatement, list[str]]] = []
        """Transactions, and their statements with the values filled in."""
        self.reads: list[SimpleStatement] = []
        self.executed: list[str] = []

    def prepare(self, query):
        return SimpleStatement(query.replace("?", "%s"))

    def execute(self, statement, values=()):
        if isinstance(statement, str):
            self.executed.append(statement)
            return Rows()
        if isinstance(statement, BatchStatement) or " IF " in statement.query_string:
            said = texts(statement, values)
            self.sent.append((statement, said))
            if found := re.search(r"last_tx = ([0-9a-f-]{36})", str(said)):
                self.attempts.append(UUID(found[1]))
            return self.fates.popleft()(self)
        self.reads.append(statement)
        if self.read_errors and (error := self.read_errors.popleft()):
            raise error.with_traceback(None)
        if "DISTINCT" in statement.query_string:
            is_there = self.version is not None
            return Rows([SimpleNamespace(version=self.version, last_tx=self.last_tx)] if is_there else [])
        if "DESC" in statement.query_string:
            asked = [row for row in self.rows if values[2] <= row < values[3]]
        else:
            asked = values[2]
        return Rows(
            SimpleNamespace(row=row, body=body, version=self.version)
            for row, body in self.rows.items()
            if row in asked
        )


def texts(sent: BatchStatement | SimpleStatement, values: Sequence[object]) -> list[str]:
    """The statements of a transaction, values filled in."""
    if isinstance(sent, SimpleStatement):
        return [bind_params(sent.query_string, values, Encoder())]
    return [text for _, text, _ in sent._statements_and_parameters]


def applied(partition: Partition) -> Rows:
    partition.version, partition.last_tx, partition.rows = 4, partition.attempts[-1], {"head": "mine"}
    return Rows()


def not_applied(partition: Partition) -> Rows:
    rows = Rows()
    rows.was_applied = False
    return rows


def lost(error: Exception):
    """The transaction did not reach Cassandra, and no error said so."""

    def fate(partition: Partition):
        raise error.with_traceback(None)

    return fate


def applied_but_lost(error: Exception):
    def fate(partition: Partition):
        applied(partition)
        raise error.with_traceback(None)

    return fate


def overtaken_and_lost(error: Exception, rows: dict[str, str]):
    """Another process's transaction came after, or instead of, this one."""

    def fate(partition: Partition):
        partition.version, partition.last_tx, partition.rows = 5, uuid4(), rows
        raise error.with_traceback(None)

    return fate


def first_attempt_landed(partition: Partition) -> Rows:
    """The first attempt was under way all the time, and came just before this one."""
    partition.version, partition.last_tx, partition.rows = 4, partition.attempts[0], {"head": "mine"}
    return not_applied(partition)


def overtaken(version: int, rows: dict[str, str]):
    """Others have committed, and this one is too late."""

    def fate(partition: Partition) -> Rows:
        partition.version, partition.last_tx, partition.rows = version, uuid4(), rows
        return not_applied(partition)

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
def test_an_answer_lost_while_another_process_went_on_is_outpaced(error):
    partition = Partition(overtaken_and_lost(error, {"head": "theirs"}))
    with pytest.raises(Outpaced) as refusal:
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert (refusal.value.expected, refusal.value.found) == (3, 5)


def test_an_answer_lost_before_another_process_built_on_it_is_a_success():
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


def forgotten(partition: Partition) -> Rows:
    partition.version, partition.last_tx, partition.rows = None, None, {}
    return Rows()


def forgotten_but_lost(partition: Partition) -> Rows:
    forgotten(partition)
    raise WRITE_TIMEOUT.with_traceback(None)


@pytest.mark.parametrize("fates", [(forgotten,), (forgotten_but_lost,), (lost(WRITE_TIMEOUT), forgotten)])
def test_a_forgotten_object_is_gone_whatever_was_answered(fates):
    partition = Partition(*fates)
    LightweightConsensus(partition).forget(KEY, 3)
    assert (partition.version, partition.rows, list(partition.fates)) == (None, {}, [])


def test_what_was_changed_meanwhile_is_not_forgotten():
    partition = Partition(overtaken(4, {"head": "theirs"}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).forget(KEY, 3)


@pytest.mark.parametrize("read_errors", [[], [CLIENT_TIMEOUT]])
def test_forgetting_without_any_answer_is_undecided(read_errors):
    partition = Partition(*[lost(WRITE_TIMEOUT)] * ATTEMPTS)
    partition.read_errors.extend(read_errors)
    with pytest.raises(Undecided):
        LightweightConsensus(partition).forget(KEY, 3)


TIDYING = Change({"head": "mine"}, ranges=[RowRange("ack/", "ack/5"), RowRange("t/", "u")])


def test_emptied_ranges_and_my_rows_are_a_success():
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {"head": "mine", "ack/5": "kept", "u": "theirs"}))
    assert LightweightConsensus(partition).commit(KEY, 3, TIDYING) == 4


@pytest.mark.parametrize("row", ["ack/1", "ack/4", "t/9"])
def test_a_range_with_a_row_in_it_is_not_a_success(row):
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {"head": "mine", row: "still there"}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 3, TIDYING)


def test_emptied_ranges_alone_prove_nothing_when_overtaken():
    partition = Partition(overtaken_and_lost(WRITE_TIMEOUT, {}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 3, Change(ranges=[RowRange("t/", "u")]))


def test_an_emptied_range_that_cannot_be_looked_at_is_undecided():
    partition = Partition(overtaken_and_lost(CLIENT_TIMEOUT, {"head": "mine"}))
    partition.read_errors.extend([None, None, READ_TIMEOUT])
    with pytest.raises(Undecided, match="ReadTimeout"):
        LightweightConsensus(partition).commit(KEY, 3, TIDYING)


def test_a_transaction_that_the_driver_sent_twice_is_a_success():
    """The driver asks the next host when a connection breaks: that one says "not applied"."""

    def sent_twice(partition: Partition) -> Rows:
        applied(partition)
        return not_applied(partition)

    assert LightweightConsensus(Partition(sent_twice)).commit(KEY, 3, MINE) == 4


def test_the_last_attempt_is_looked_after_too():
    partition = Partition(*[lost(WRITE_TIMEOUT)] * (ATTEMPTS - 1), applied_but_lost(WRITE_TIMEOUT))
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


# Late landing: an unanswered transaction is applied when it has been given up already


def test_an_attempt_that_lands_before_the_next_is_a_success():
    partition = Partition(lost(CLIENT_TIMEOUT), first_attempt_landed)
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


def test_an_attempt_that_lands_before_the_next_is_not_tried_a_third_time():
    partition = Partition(lost(CLIENT_TIMEOUT), first_attempt_landed)
    LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(partition.attempts) == 2


def test_an_attempt_that_lands_before_the_next_is_a_success_even_if_that_one_s_answer_is_lost():
    def first_attempt_landed_and_lost(partition: Partition):
        first_attempt_landed(partition)
        raise CLIENT_TIMEOUT.with_traceback(None)

    partition = Partition(lost(CLIENT_TIMEOUT), first_attempt_landed_and_lost)
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


def test_an_attempt_that_lands_before_the_last_one_is_a_success():
    partition = Partition(*[lost(CLIENT_TIMEOUT)] * (ATTEMPTS - 1), first_attempt_landed)
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


def test_a_late_attempt_on_which_another_process_has_built_is_a_success():
    partition = Partition(lost(CLIENT_TIMEOUT), overtaken(5, {"head": "mine", "later": "theirs"}))
    assert LightweightConsensus(partition).commit(KEY, 3, MINE) == 4


def test_a_late_attempt_that_finds_another_change_is_outpaced():
    partition = Partition(lost(CLIENT_TIMEOUT), overtaken(4, {"head": "theirs"}))
    with pytest.raises(Outpaced) as refusal:
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert (refusal.value.expected, refusal.value.found) == (3, 4)


def test_equal_rows_of_another_process_are_not_mine_when_they_are_the_next_version():
    """Two that write the same cannot both have made version 4."""
    partition = Partition(lost(CLIENT_TIMEOUT), overtaken(4, {"head": "mine"}))
    with pytest.raises(Outpaced):
        LightweightConsensus(partition).commit(KEY, 3, MINE)


def test_equal_rows_of_another_process_are_not_mine_when_no_answer_was_lost():
    with pytest.raises(Outpaced):
        LightweightConsensus(Partition(overtaken(5, {"head": "mine"}))).commit(KEY, 3, MINE)


# Undecided: the answer is missing, and what became of the transaction cannot be found out


@LOST_ANSWERS
def test_without_any_answer_it_is_undecided(error):
    with pytest.raises(Undecided) as doubt:
        LightweightConsensus(Partition(*[lost(error)] * ATTEMPTS)).commit(KEY, 3, MINE)
    assert (doubt.value.key, doubt.value.expected) == (KEY, 3)
    assert doubt.value.reason.startswith(type(error).__name__)


def test_it_is_undecided_only_after_the_last_attempt():
    partition = Partition(*[lost(WRITE_TIMEOUT)] * ATTEMPTS)
    with pytest.raises(Undecided):
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(partition.attempts) == ATTEMPTS


def test_undecided_keeps_the_driver_s_error():
    with pytest.raises(Undecided) as doubt:
        LightweightConsensus(Partition(*[lost(CLIENT_TIMEOUT)] * ATTEMPTS)).commit(KEY, 3, MINE)
    assert doubt.value.__cause__ is CLIENT_TIMEOUT


def test_undecided_says_what_to_do():
    assert str(Undecided(KEY, 3, "no answer")) == (
        "log orders: whether the change of version 3 was applied is not known (no answer); nothing else was "
        "done. Run the same step again: it begins by reading the current state."
    )


def test_when_the_question_after_a_lost_answer_is_not_answered_either_it_is_undecided():
    partition = Partition(applied_but_lost(CLIENT_TIMEOUT))
    partition.read_errors.append(READ_TIMEOUT)
    with pytest.raises(Undecided, match="ReadTimeout"):
        LightweightConsensus(partition).commit(KEY, 3, MINE)


def test_when_the_rows_after_a_lost_answer_cannot_be_read_it_is_undecided():
    partition = Partition(overtaken_and_lost(CLIENT_TIMEOUT, {"head": "mine"}))
    partition.read_errors.extend([None, READ_TIMEOUT])
    with pytest.raises(Undecided, match="ReadTimeout"):
        LightweightConsensus(partition).commit(KEY, 3, MINE)


def test_without_a_reason_why_it_was_not_applied_it_is_undecided():
    partition = Partition(not_applied)
    partition.read_errors.append(NO_HOST)
    with pytest.raises(Undecided, match="NoHostAvailable"):
        LightweightConsensus(partition).commit(KEY, 2, MINE)


def test_a_refusal_after_a_lost_answer_decides_nothing():
    """The attempt before it may still land."""
    unauthorized = lost(Unauthorized("permission withdrawn"))
    partition = Partition(lost(CLIENT_TIMEOUT), *[unauthorized] * (ATTEMPTS - 1))
    with pytest.raises(Undecided, match="permission withdrawn"):
        LightweightConsensus(partition).commit(KEY, 3, MINE)


@REFUSALS
def test_a_refusal_comes_through_as_it_is(error):
    with pytest.raises(type(error)):
        LightweightConsensus(Partition(lost(error))).commit(KEY, 3, MINE)


@REFUSALS
def test_a_refusal_is_not_tried_again(error):
    partition = Partition(lost(error))
    with pytest.raises(type(error)):
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(partition.attempts) == 1


def test_a_read_without_an_answer_comes_through_as_it_is():
    partition = Partition()
    partition.read_errors.append(READ_TIMEOUT)
    with pytest.raises(ReadTimeout):
        LightweightConsensus(partition).read(KEY, ["head"])


def test_an_error_of_another_kind_comes_through_at_once():
    partition = Partition(lost(RuntimeError("a defect")))
    with pytest.raises(RuntimeError):
        LightweightConsensus(partition).commit(KEY, 3, MINE)
    assert len(partition.attempts) == 1


def test_a_transaction_is_one_batch_with_the_condition_first():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 3, Change({"head": "mine"}, deletes=["gone"]))
    ((_, (condition, put, delete)),) = partition.sent
    assert condition.startswith("UPDATE tidemark.object SET version = 4")
    assert condition.endswith("IF version = 3")
    assert put.startswith("INSERT INTO tidemark.object")
    assert delete.startswith("DELETE FROM tidemark.object")


def test_a_range_is_one_statement_however_many_rows_it_has():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 3, Change(ranges=[RowRange("ack/", "ack/7")]))
    ((_, (_, range_delete)),) = partition.sent
    assert range_delete.startswith("DELETE FROM tidemark.object WHERE ")
    assert range_delete.endswith("AND row >= 'ack/' AND row < 'ack/7'")


def test_a_first_version_is_on_condition_that_there_is_none():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 0, MINE)
    assert partition.sent[0][1][0].endswith("IF version = NULL")


def test_one_row_alone_needs_no_batch():
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 3, MINE)
    ((_, (only,)),) = partition.sent
    assert only.startswith("UPDATE tidemark.object SET version = 4")
    assert only.endswith("body = 'mine' WHERE kind = log AND name = 'orders' AND row = 'head' IF version = 3")


@pytest.mark.parametrize("change", [MINE, Change({"head": "mine"}, deletes=["gone"])])
def test_a_transaction_is_serial_over_all_data_centres_and_sent_once(change):
    partition = Partition(applied)
    LightweightConsensus(partition).commit(KEY, 3, change)
    ((sent, _),) = partition.sent
    assert sent.serial_consistency_level == ConsistencyLevel.SERIAL
    assert sent.consistency_level == ConsistencyLevel.QUORUM
    assert isinstance(sent.retry_policy, FallthroughRetryPolicy)


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
