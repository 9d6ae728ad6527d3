"""Rules of following a stream: positions, reconnections, marks, gaps, garbage."""

from random import Random

import pytest
from tests.support.model_agent import block, opened, operation

from tidemark.oplog.consumer.backoff import Backoff
from tidemark.oplog.consumer.errors import (
    AgentUnreachable,
    ReplicationNeeded,
    StreamBroken,
    StreamDenied,
    StreamRefused,
)
from tidemark.oplog.consumer.following import MOST_GARBLED, Following, FollowingRules
from tidemark.oplog.consumer.in_flight import InFlight, Position
from tidemark.oplog.consumer.items import OpLogEvent, OpLogItem, OpLogLive, OpLogOperation, OpLogReset
from tidemark.oplog.consumer.request import StreamAddress

pytestmark = pytest.mark.unit

STREAM = {"content-type": "text/event-stream"}


class Consumer:
    """A consumer without a network."""

    def __init__(self, start: Position, *, allow: bool = True, attempts: int | None = None) -> None:
        self.in_flight = InFlight(start, 1_000)
        address = StreamAddress.of("http://agent/", None, None, None, None)
        rules = FollowingRules(allow, attempts)
        self.following = Following(address, rules, start, self.in_flight, Backoff(Random(1)))

    def connect(self, stream: bytes = b"") -> str | None:
        """Connects to this stream; returns the id that was asked for."""
        asked = self.following.connecting().get("Last-Event-ID")
        self.following.answered(200, STREAM)
        self.following.received(stream)
        return asked

    def items(self) -> list[OpLogItem]:
        found = []
        while (item := self.following.next_item()) is not None:
            found.append(item)
        return found

    @property
    def position(self) -> Position:
        return self.in_flight.position


def test_R15_live_from_now_has_a_position_from_the_first_event_on():
    consumer = Consumer(Position(None))
    assert consumer.connect(opened("live", "o1.7")) is None
    assert consumer.items() == []
    assert consumer.position == Position("o1.7")


def test_R26_a_replication_that_has_not_begun_is_asked_for_again():
    consumer = Consumer(Position("0"))
    consumer.connect(opened("replication", "r1.5.0"))
    assert consumer.items() == []
    assert consumer.position == Position("0")


def test_R16_a_new_connection_continues_after_what_was_handed_out():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(opened("exact", "o1.0") + operation("insert", "x", "o1.1"))
    (item,) = consumer.items()
    consumer.following.lost("cut")
    assert consumer.connect() == "o1.1"
    assert consumer.position == Position("o1.0")
    consumer.in_flight.done(item.number)
    assert consumer.position == Position("o1.1")


def test_an_event_that_was_cut_does_not_exist():
    consumer = Consumer(Position("o1.0"))
    whole = operation("insert", "x", "o1.1")
    consumer.connect(whole[:-1])
    assert consumer.items() == []
    consumer.following.lost("cut")
    assert consumer.connect(whole) == "o1.0"
    assert len(consumer.items()) == 1


def test_H6_H7_marks_are_handed_out():
    consumer = Consumer(Position("0"))
    consumer.connect(block("reset", "r1.1.0") + operation("insert", "x", "r1.1.1") + block("live", "o1.1"))
    reset, operation_, live = consumer.items()
    assert isinstance(reset, OpLogReset)
    assert isinstance(operation_, OpLogOperation)
    assert isinstance(live, OpLogLive)
    assert [item.event for item in (reset, operation_, live)] == ["reset", OpLogEvent.INSERT, "live"]
    assert live.event_id == "o1.1"


def test_a_checkpoint_moves_the_position_and_is_no_item():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(block("checkpoint", "o1.9"))
    assert consumer.items() == []
    assert consumer.position == Position("o1.9")


def test_a_block_with_only_an_id_moves_the_position():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(b"id: o1.9\n\n")
    assert consumer.items() == []
    assert consumer.position == Position("o1.9")


def test_slow_ends_the_stream_and_moves_nothing():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(operation("insert", "x", "o1.1") + block("slow", None))
    assert len(consumer.items()) == 1
    assert not consumer.following.is_connected
    assert consumer.connect() == "o1.1"


def test_a_reset_that_was_not_done_is_handed_out_first_after_a_restart():
    consumer = Consumer(Position("r1.5.0", reset=True))
    (reset,) = consumer.items()
    assert reset.event == "reset"
    assert consumer.position == Position("r1.5.0", reset=True)
    assert consumer.connect() == "r1.5.0"


def test_R18_a_position_that_is_ignored_leads_to_a_full_replication():
    consumer = Consumer(Position("o1.5"))
    consumer.connect(opened("live", "o1.9") + operation("insert", "x", "o1.10"))
    assert consumer.items() == []
    assert consumer.position == Position("o1.5")
    assert consumer.following.wait == 0
    assert consumer.connect(opened("replication", "r1.9.0") + block("reset", "r1.9.0")) == "0"
    assert [item.event for item in consumer.items()] == ["reset"]
    consumer.following.lost("cut")
    assert consumer.connect() == "r1.9.0"


def test_R18_a_position_that_is_ignored_is_an_error_without_replications():
    consumer = Consumer(Position("o1.5"), allow=False)
    consumer.connect(opened("live", "o1.9") + operation("insert", "x", "o1.10"))
    with pytest.raises(ReplicationNeeded) as needed:
        consumer.items()
    assert needed.value.position == "o1.5"
    assert consumer.position == Position("o1.5")


def test_a_reset_is_an_error_without_replications():
    consumer = Consumer(Position("o1.5"), allow=False)
    consumer.connect(
        opened("reset", "r1.9.0") + block("reset", "r1.9.0") + operation("insert", "x", "r1.9.1")
    )
    with pytest.raises(ReplicationNeeded):
        consumer.items()
    assert consumer.items() == []
    assert consumer.position == Position("o1.5")


def test_a_replication_that_was_asked_for_is_allowed():
    consumer = Consumer(Position("0"), allow=False)
    consumer.connect(opened("replication", "r1.9.0") + block("reset", "r1.9.0"))
    assert [item.event for item in consumer.items()] == ["reset"]


def test_an_agent_without_replications_is_an_error_and_no_endless_loop():
    consumer = Consumer(Position("0"))
    consumer.connect(opened("live", "o1.9"))
    with pytest.raises(StreamRefused):
        consumer.items()


def test_what_precedes_garbage_is_handed_out():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(operation("insert", "x", "o1.1") + block("insert", "o1.2", "garbage"))
    assert [item.event_id for item in consumer.items()] == ["o1.1"]
    assert not consumer.following.is_connected
    assert consumer.connect() == "o1.1"


def test_what_follows_garbage_is_void():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(block("insert", "o1.1", "garbage") + operation("insert", "x", "o1.2"))
    assert consumer.items() == []
    assert consumer.items() == []
    assert consumer.connect() == "o1.0"


def test_operations_before_a_line_without_end_are_handed_out():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(operation("insert", "x", "o1.1") + b"data: " + b"x" * (2 << 20))
    assert [item.event_id for item in consumer.items()] == ["o1.1"]
    assert not consumer.following.is_connected


def test_garbage_that_comes_again_and_again_is_an_error():
    consumer = Consumer(Position("o1.0"))
    for _ in range(MOST_GARBLED - 1):
        consumer.connect(block("create", "o1.1"))
        assert consumer.items() == []
    consumer.connect(block("create", "o1.1"))
    with pytest.raises(StreamBroken) as broken:
        consumer.items()
    assert broken.value.times == MOST_GARBLED


def test_garbage_now_and_then_is_no_error():
    consumer = Consumer(Position("o1.0"))
    for number in range(2 * MOST_GARBLED):
        consumer.connect(operation("insert", "x", f"o1.{number}") + b"event: insert\n\n")
        assert len(consumer.items()) == 1


def test_an_empty_id_is_garbage_because_it_would_begin_anew():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(block("checkpoint", ""))
    assert consumer.items() == []
    assert consumer.connect() == "o1.0"


def test_waits_grow_until_the_stream_says_something():
    consumer = Consumer(Position("o1.0"))
    waits = []
    for _ in range(4):
        consumer.connect(opened("exact", "o1.0"))
        consumer.items()
        consumer.following.lost("closed")
        waits.append(consumer.following.wait)
    assert waits == sorted(waits)
    assert waits[-1] > 3
    consumer.connect(block("checkpoint", "o1.1"))
    consumer.items()
    consumer.following.lost("closed")
    assert consumer.following.wait <= 1


def test_retry_is_honoured():
    consumer = Consumer(Position("o1.0"))
    consumer.connect(b"retry: 20\n\n")
    consumer.items()
    consumer.following.lost("closed")
    assert consumer.following.wait <= 0.02


def test_retry_after_is_honoured():
    consumer = Consumer(Position("o1.0"))
    consumer.following.connecting()
    consumer.following.answered(503, {"retry-after": "40"}, b"cassandra is down")
    assert consumer.following.wait >= 40
    assert not consumer.following.is_connected


def test_attempts_that_fail_are_counted():
    consumer = Consumer(Position("o1.0"), attempts=2)
    consumer.following.connecting()
    consumer.following.lost("refused")
    consumer.following.connecting()
    with pytest.raises(AgentUnreachable) as unreachable:
        consumer.following.lost("refused")
    assert unreachable.value.attempts == 2


def test_a_stream_that_ends_is_no_failed_attempt():
    consumer = Consumer(Position("o1.0"), attempts=1)
    consumer.connect(opened("exact", "o1.0"))
    consumer.items()
    consumer.following.lost("maximum age")
    assert consumer.connect() == "o1.0"


def test_a_token_that_is_not_accepted_ends_the_iteration():
    consumer = Consumer(Position("o1.0"))
    consumer.following.connecting()
    with pytest.raises(StreamDenied):
        consumer.following.answered(401, {}, b"no token")
