"""Rows are gathered, sent a few batches at a time, and acknowledged before the writer goes on."""

import logging
from typing import Any

import pytest
from cassandra import ConsistencyLevel
from cassandra.protocol import BatchMessage, ProtocolHandler
from cassandra.query import BatchType
from tests.support.fake_cluster import HEADER, PROTOCOL, FakeCluster, make_statement

from tidemark.cassandra import cells
from tidemark.cassandra.bulk.writer import BulkCounts, BulkWriter

pytestmark = pytest.mark.unit

QUORUM = ConsistencyLevel.LOCAL_QUORUM
ROWS = make_statement("rows")
HEADS = make_statement("heads", markers=2)


def writer_over(cluster: FakeCluster, **options: Any) -> BulkWriter:
    return BulkWriter(cluster.session, QUORUM, **options)


def rows_of(*sizes: int) -> list[bytes]:
    """Rows of so many bytes, their headers included."""
    return [cells.blob(bytes(size - len(ROWS.prefix) - 4)) for size in sizes]


def add_all(writer: BulkWriter, rows: list[bytes]) -> None:
    for row in rows:
        writer.add(ROWS, row)


class LeaseGone(Exception):
    """What a check may raise."""


def test_a_batch_is_byte_for_byte_the_drivers_own(cluster: FakeCluster) -> None:
    with writer_over(cluster) as writer:
        writer.add(ROWS, cells.text("a"))
        writer.add(HEADS, cells.text("b") + cells.NULL)
    [batch] = cluster.arrived
    queries = [(True, ROWS.prepared.query_id, [b"a"]), (True, HEADS.prepared.query_id, [b"b", None])]
    message = BatchMessage(BatchType.UNLOGGED, queries, QUORUM, timestamp=batch.timestamp)
    frame = ProtocolHandler.encode_message(message, 1, PROTOCOL, None, False)
    assert batch.body == frame[HEADER:]


def test_a_batch_is_capped_by_rows(cluster: FakeCluster) -> None:
    with writer_over(cluster, rows=100) as writer:
        add_all(writer, [cells.int_(number) for number in range(250)])
    assert [len(batch.rows) for batch in cluster.arrived] == [100, 100, 50]


def test_a_batch_is_capped_by_bytes(cluster: FakeCluster) -> None:
    with writer_over(cluster, wire_bytes=1000) as writer:
        add_all(writer, rows_of(400, 400, 200, 400, 600, 100))
    assert [batch.size for batch in cluster.arrived] == [1000, 1000, 100]


def test_a_row_above_the_cap_travels_alone(cluster: FakeCluster) -> None:
    with writer_over(cluster, wire_bytes=1000) as writer:
        add_all(writer, rows_of(100, 5000, 100))
    assert [batch.size for batch in cluster.arrived] == [100, 5000, 100]


def test_no_row_is_left_out_and_none_changes(cluster: FakeCluster) -> None:
    rows = [cells.int_(number) for number in range(1234)]
    with writer_over(cluster, rows=7) as writer:
        add_all(writer, rows)
    assert [row for batch in cluster.arrived for row in batch.rows] == rows


def test_different_statements_share_a_batch(cluster: FakeCluster) -> None:
    with writer_over(cluster) as writer:
        writer.add(ROWS, cells.text("a"))
        writer.add(HEADS, cells.text("a") + cells.int_(1))
    assert [batch.ids for batch in cluster.arrived] == [[ROWS.prepared.query_id, HEADS.prepared.query_id]]


def test_adding_waits_while_enough_is_under_way(cluster: FakeCluster) -> None:
    with writer_over(cluster, rows=1, in_flight=3) as writer:
        add_all(writer, rows_of(*[100] * 20))
    assert cluster.most_under_way == 3


def test_adding_does_not_wait_for_the_first_ones(cluster: FakeCluster) -> None:
    writer = writer_over(cluster, rows=1, in_flight=3)
    add_all(writer, rows_of(100, 100, 100))
    assert writer.counts.rows == 0


def test_what_is_gathered_is_not_sent_before_it_must(cluster: FakeCluster) -> None:
    writer = writer_over(cluster)
    add_all(writer, rows_of(100, 100))
    assert cluster.arrived == []


def test_flush_returns_when_everything_is_acknowledged(cluster: FakeCluster) -> None:
    writer = writer_over(cluster, rows=2)
    add_all(writer, rows_of(*[100] * 5))
    writer.flush()
    assert writer.counts.rows == 5
    assert not cluster.arrive(), "an answer is still on its way"


def test_a_flushed_writer_goes_on(cluster: FakeCluster) -> None:
    writer = writer_over(cluster)
    for _ in range(2):
        add_all(writer, rows_of(100))
        writer.flush()
    assert len(cluster.arrived) == 2


def test_nothing_added_is_nothing_sent(cluster: FakeCluster) -> None:
    with writer_over(cluster):
        pass
    assert cluster.arrived == []


def test_counts_are_of_what_was_acknowledged(cluster: FakeCluster) -> None:
    with writer_over(cluster, rows=2) as writer:
        add_all(writer, rows_of(100, 200, 300))
    assert writer.counts == BulkCounts(rows=3, batches=2, bytes=600, retries=0)


def fail_after(writer: BulkWriter, rows: list[bytes]) -> None:
    with writer:
        add_all(writer, rows)
        raise LeaseGone


def test_an_error_inside_the_block_sends_nothing_more(cluster: FakeCluster) -> None:
    with pytest.raises(LeaseGone):
        fail_after(writer_over(cluster, rows=2), rows_of(100, 100, 100))
    assert [len(batch.rows) for batch in cluster.arrived] == [2]


def test_an_error_inside_the_block_waits_for_what_is_under_way(cluster: FakeCluster) -> None:
    writer = writer_over(cluster, rows=1)
    with pytest.raises(LeaseGone):
        fail_after(writer, rows_of(100, 100))
    assert writer.counts.rows == 2


def test_every_batch_is_checked_before_it_is_sent(cluster: FakeCluster) -> None:
    sent_at_check: list[int] = []
    with writer_over(cluster, rows=1, check=lambda: sent_at_check.append(len(cluster.arrived))) as writer:
        add_all(writer, rows_of(100, 100, 100))
    assert sent_at_check == [0, 1, 2]


def failing_at(cluster: FakeCluster, batch: int) -> Any:
    def check() -> None:
        if len(cluster.arrived) == batch:
            raise LeaseGone

    return check


def test_what_the_check_raises_ends_the_writer(cluster: FakeCluster) -> None:
    writer = writer_over(cluster, rows=1, check=failing_at(cluster, 2))
    with pytest.raises(LeaseGone):
        add_all(writer, rows_of(*[100] * 5))
    assert len(cluster.arrived) == 2


def test_what_is_under_way_when_the_check_fails_is_waited_for(cluster: FakeCluster) -> None:
    writer = writer_over(cluster, rows=1, check=failing_at(cluster, 2))
    with pytest.raises(LeaseGone):
        add_all(writer, rows_of(*[100] * 5))
    assert writer.counts.rows == 2


@pytest.mark.parametrize("again", ["add", "flush"])
def test_an_ended_writer_says_so_again(cluster: FakeCluster, again: str) -> None:
    writer = writer_over(cluster, rows=1, check=failing_at(cluster, 0))
    with pytest.raises(LeaseGone):
        add_all(writer, rows_of(100))
    with pytest.raises(LeaseGone):
        writer.flush() if again == "flush" else writer.add(ROWS, cells.int_(1))


def test_an_interrupted_writer_does_not_pretend_to_be_whole(cluster: FakeCluster) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    writer = writer_over(cluster, rows=1, check=interrupted)
    with pytest.raises(KeyboardInterrupt):
        add_all(writer, rows_of(100))
    with pytest.raises(KeyboardInterrupt):
        writer.flush()


@pytest.mark.parametrize("limits", [{"in_flight": 0}, {"rows": 0}, {"rows": 65_536}, {"wire_bytes": 0}])
def test_limits_that_allow_nothing_are_refused(cluster: FakeCluster, limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(limits)))):
        writer_over(cluster, **limits)


@pytest.mark.parametrize(
    ("warning", "told"),
    [
        ("Unlogged batch covering 72 partitions detected against table [journal.rows].", False),
        ("Batch for [journal.rows] is of size 30KiB, exceeding specified threshold of 5KiB.", False),
        ("Guardrail violated: the disk is full.", True),
    ],
)
def test_what_the_server_says_about_every_batch_is_not_logged(
    cluster: FakeCluster, request: pytest.FixtureRequest, warning: str, told: bool
) -> None:
    records: list[logging.LogRecord] = []
    handler, logger = logging.Handler(), logging.getLogger("cassandra.protocol")
    handler.emit = records.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    request.addfinalizer(lambda: logger.removeHandler(handler))

    writer_over(cluster)
    logger.warning("Server warning: %s", warning)

    assert bool(records) == told
