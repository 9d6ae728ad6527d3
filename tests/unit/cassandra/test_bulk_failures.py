"""What passes is repeated, what is too large is cut, what is forgotten is prepared; the rest is an error."""

import pickle
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest
from cassandra import ConsistencyLevel, OperationTimedOut, WriteType
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException, ConnectionShutdown
from cassandra.protocol import (
    InvalidRequestException,
    IsBootstrappingErrorMessage,
    ServerError,
    SyntaxException,
    UnauthorizedErrorMessage,
    UnavailableErrorMessage,
    WriteFailureMessage,
    WriteTimeoutErrorMessage,
)
from tests.support.fake_cluster import OVERLOADED, TOO_LARGE, Arrived, FakeCluster, make_statement

from tidemark.cassandra import cells
from tidemark.cassandra.bulk.batch_errors import (
    Allowance,
    BulkFailed,
    Retries,
    RetryDecision,
    describe,
    judge,
)
from tidemark.cassandra.bulk.writer import BulkWriter

pytestmark = pytest.mark.unit

ROWS = make_statement("rows")
HEADS = make_statement("heads")
STEADY = Retries(jitter=lambda least, most: 1.0)

ONE = ConsistencyLevel.ONE
RESPONSES = {"consistency": ONE, "received_responses": 0, "required_responses": 1}
PASSING: list[Exception] = [
    OVERLOADED,
    WriteTimeoutErrorMessage(0x1100, "late", RESPONSES | {"write_type": WriteType.UNLOGGED_BATCH}),
    WriteFailureMessage(
        0x1500, "broken", RESPONSES | {"write_type": WriteType.UNLOGGED_BATCH, "failures": 1}
    ),
    UnavailableErrorMessage(
        0x1000, "away", {"consistency": ONE, "required_replicas": 1, "alive_replicas": 0}
    ),
    IsBootstrappingErrorMessage(0x1002, "young", None),
    ServerError(0x0000, "null pointer", None),
    ConnectionShutdown("lost"),
    ConnectionException("lost"),
]
REFUSALS: list[Exception] = [
    InvalidRequestException(0x2200, "table rows does not exist", None),
    UnauthorizedErrorMessage(0x2100, "no MODIFY on rows", None),
    SyntaxException(0x2000, "no viable alternative", None),
]


def named(error: Exception) -> str:
    return type(error).__name__


def writer_over(cluster: FakeCluster, **options: Any) -> BulkWriter:
    return BulkWriter(cluster.session, ONE, **{"retries": STEADY} | options)


def write(writer: BulkWriter, rows: int = 1) -> BulkWriter:
    with writer:
        for number in range(rows):
            writer.add(ROWS, cells.int_(number))
    return writer


def failing(times: int, error: Exception) -> Callable[[Arrived], Exception | None]:
    """Answers: so many errors, then none."""
    numbers = count()
    return lambda batch: error if next(numbers) < times else None


def fails(writer: BulkWriter, rows: int = 1) -> BulkFailed:
    with pytest.raises(BulkFailed) as caught:
        write(writer, rows)
    return caught.value


@pytest.mark.parametrize("error", PASSING, ids=named)
def test_what_passes_is_sent_again(cluster: FakeCluster, error: Exception) -> None:
    cluster.answer = failing(1, error)
    write(writer_over(cluster))
    first, second = cluster.arrived
    assert second.body == first.body


def test_a_retry_is_counted(cluster: FakeCluster) -> None:
    cluster.answer = failing(2, ConnectionShutdown("lost"))
    assert write(writer_over(cluster)).counts.retries == 2


def test_pauses_double(cluster: FakeCluster) -> None:
    cluster.answer = failing(5, OVERLOADED)
    write(writer_over(cluster))
    times = [batch.at for batch in cluster.arrived]
    assert [later - earlier for earlier, later in pairwise(times)] == [0.5, 1, 2, 4, 8]


def test_five_pauses_are_twenty_seconds_at_most() -> None:
    longest = Retries(jitter=max)
    assert sum(longest.pause(failures) for failures in range(1, longest.most + 1)) <= 20


def test_pauses_differ_so_that_writers_do_not_come_back_together() -> None:
    assert len({Retries().pause(1) for _ in range(10)}) > 1


def test_other_batches_do_not_wait_for_a_pause(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, OVERLOADED)
    write(writer_over(cluster, rows=1), rows=16)
    assert [batch.at for batch in cluster.arrived] == [1000.0] * 16 + [1000.5]


def test_a_batch_is_given_up_after_six_attempts(cluster: FakeCluster) -> None:
    cluster.answer = failing(99, OVERLOADED)
    failure = fails(writer_over(cluster), rows=3)
    assert (failure.tables, failure.rows, failure.attempts) == (("journal.rows",), 3, 6)


def test_a_retry_is_checked_too(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, OVERLOADED)
    checks: list[int] = []
    write(writer_over(cluster, check=lambda: checks.append(len(cluster.arrived))))
    assert checks == [0, 1]


@pytest.mark.parametrize("error", REFUSALS, ids=named)
def test_what_is_refused_is_not_sent_again(cluster: FakeCluster, error: Exception) -> None:
    cluster.answer = failing(1, error)
    assert fails(writer_over(cluster)).attempts == 1


def test_what_is_refused_needs_a_person(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, REFUSALS[0])
    assert fails(writer_over(cluster)).needs_person


def test_what_is_given_up_may_be_tried_again_without_a_person(cluster: FakeCluster) -> None:
    cluster.answer = failing(99, OVERLOADED)
    assert not fails(writer_over(cluster)).needs_person


def test_the_error_says_what_happened_and_what_to_do(cluster: FakeCluster) -> None:
    cluster.answer = failing(99, ConnectionShutdown("lost"))
    assert str(fails(writer_over(cluster), rows=2)) == (
        "journal.rows: a batch of 2 rows was not acknowledged in 6 attempts (ConnectionShutdown: lost). It "
        "may be there in part, and nothing was sent after it. See that Cassandra's nodes are up and not "
        "overloaded, then run the same again: what is there already does no harm."
    )


@pytest.mark.parametrize(
    ("errors", "words"),
    [({}, "no node is up"), ({"10.0.0.1": ConnectionShutdown("lost")}, "ConnectionShutdown: lost")],
)
def test_when_no_node_answers_the_error_says_why(errors: dict[str, Exception], words: str) -> None:
    assert describe(NoHostAvailable("nobody", errors)) == words


def test_the_error_names_every_table_of_the_batch(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, REFUSALS[0])
    writer = writer_over(cluster)
    writer.add(ROWS, cells.int_(1))
    writer.add(HEADS, cells.int_(1))
    with pytest.raises(
        BulkFailed, match=r"^journal\.heads, journal\.rows: Cassandra refuses a batch of 2 rows"
    ):
        writer.flush()


def test_the_error_travels_between_processes(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, REFUSALS[0])
    failure = fails(writer_over(cluster))
    assert str(pickle.loads(pickle.dumps(failure))) == str(failure)


def test_after_an_error_nothing_more_is_sent(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, REFUSALS[0])
    fails(writer_over(cluster, rows=1, in_flight=2), rows=10)
    assert len(cluster.arrived) == 2


def test_after_an_error_what_is_under_way_is_waited_for(cluster: FakeCluster) -> None:
    cluster.answer = failing(1, REFUSALS[0])
    writer = writer_over(cluster, rows=1, in_flight=4)
    fails(writer, rows=10)
    assert writer.counts.rows == 3


def test_an_overload_halves_what_is_under_way(cluster: FakeCluster) -> None:
    cluster.answer = failing(8, OVERLOADED)
    writer = writer_over(cluster, rows=1, in_flight=8)
    for number in range(8):
        writer.add(ROWS, cells.int_(number))
    cluster.most_under_way = 0
    writer.flush()
    assert cluster.most_under_way == 4


def test_an_allowance_grows_by_one_a_round_up_to_where_it_was() -> None:
    allowance = Allowance(4)
    allowance.overloaded(1, newest=4)
    seen = []
    for _ in range(12):
        allowance.answered()
        seen.append(allowance.now)
    assert seen == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]


def test_batches_that_met_the_same_overload_count_once() -> None:
    allowance = Allowance(16)
    for number in (1, 2, 16):
        allowance.overloaded(number, newest=16)
    assert allowance.now == 8


def test_an_allowance_is_never_nothing() -> None:
    allowance = Allowance(2)
    for number in range(1, 9):
        allowance.overloaded(number, newest=number)
    assert allowance.now == 1


def test_a_batch_that_is_too_large_is_cut_until_it_fits(cluster: FakeCluster) -> None:
    cluster.answer = lambda batch: TOO_LARGE if len(batch.rows) > 30 else None
    write(writer_over(cluster), rows=100)
    taken = [row for batch in cluster.arrived if len(batch.rows) <= 30 for row in batch.rows]
    assert sorted(taken) == [cells.int_(number) for number in range(100)]


def test_the_parts_of_a_cut_batch_keep_its_write_time(cluster: FakeCluster) -> None:
    cluster.answer = lambda batch: TOO_LARGE if len(batch.rows) > 1 else None
    write(writer_over(cluster), rows=2)
    assert {batch.timestamp for batch in cluster.arrived} == {1}


def test_after_a_cut_the_next_batches_are_smaller_from_the_start(cluster: FakeCluster) -> None:
    cluster.answer = lambda batch: TOO_LARGE if len(batch.rows) > 50 else None
    write(writer_over(cluster, in_flight=1), rows=1000)
    too_large = [batch.timestamp for batch in cluster.arrived if len(batch.rows) > 50]
    assert too_large == [1, 2], "the first, and the one that was gathered meanwhile"


def test_a_single_row_that_is_too_large_is_an_error(cluster: FakeCluster) -> None:
    cluster.answer = lambda batch: TOO_LARGE if cells.int_(5) in batch.rows else None
    failure = fails(writer_over(cluster), rows=10)
    assert (failure.rows, failure.refused) == (1, True)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (OperationTimedOut({"10.0.0.1": "silent"}, "10.0.0.1"), RetryDecision.SLOWER),
        (NoHostAvailable("nobody", {}), RetryDecision.AGAIN),
        (InvalidRequestException(0x2200, "CQL Message of size 2 bytes exceeds allowed maximum of 1", None)
         .to_exception(), RetryDecision.SMALLER),
        (ValueError("a defect"), RetryDecision.NEVER),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_an_error_means(error: Exception, verdict: RetryDecision) -> None:
    assert judge(error) is verdict


def test_a_forgotten_statement_is_prepared_and_the_batch_sent_again(cluster: FakeCluster) -> None:
    cluster.forgotten = {ROWS.prepared.query_id}
    writer = write(writer_over(cluster), rows=3)
    assert cluster.prepared_again == ["INSERT INTO rows"]
    assert (writer.counts.rows, writer.counts.retries) == (3, 0)


def test_every_forgotten_statement_of_a_batch_is_prepared(cluster: FakeCluster) -> None:
    cluster.forgotten = {ROWS.prepared.query_id, HEADS.prepared.query_id}
    with writer_over(cluster) as writer:
        writer.add(ROWS, cells.int_(1))
        writer.add(HEADS, cells.int_(1))
    assert cluster.prepared_again == ["INSERT INTO rows", "INSERT INTO heads"]


def test_a_node_that_forgets_for_ever_is_not_asked_for_ever(cluster: FakeCluster) -> None:
    class Forgetful(set[bytes]):
        def discard(self, element: bytes) -> None:
            """Keep on not knowing it."""

    cluster.forgotten = Forgetful({ROWS.prepared.query_id})
    assert "forgets at once: INSERT INTO rows" in fails(writer_over(cluster)).cause
