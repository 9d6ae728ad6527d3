"""Whatever happens between agent and consumer, the consumer's copy ends up equal to the source.

A model of everything around the consumer: operations, cuts at any byte, crashes, retention that passes its
position, items done in any order that keeps those of one object in order.
"""

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.model_agent import ModelAgent, state_of

from tidemark.oplog.consumer.backoff import Backoff
from tidemark.oplog.consumer.following import Following, FollowingRules
from tidemark.oplog.consumer.in_flight import InFlight, Position
from tidemark.oplog.consumer.items import OpLogItem, OpLogOperation, OpLogReset
from tidemark.oplog.consumer.position_keeper import PositionKeeper
from tidemark.oplog.consumer.request import StreamAddress
from tidemark.oplog.consumer.state_file import StateFile

pytestmark = pytest.mark.unit

STREAM = {"content-type": "text/event-stream"}
NAMES = st.sampled_from("abcd")
EVENTS = st.sampled_from(["insert", "update", "delete"])
SIZES = st.integers(1, 150) | st.just(10_000)
"""Of what arrives at once: an event has about 130 bytes."""


class ConsumerOfAModel(RuleBasedStateMachine):
    """A consumer with a state file and a durable copy of its own, and the agent that it follows."""

    @initialize(log=st.lists(st.tuples(EVENTS, NAMES), min_size=1, max_size=6))
    def begin(self, log: list[tuple[str, str]]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.agent = ModelAgent(log)
        self.copy: set[str] = {"left over from before"}
        self.open()

    def open(self) -> None:
        file = StateFile.open(Path(self.folder.name) / "position")
        saved = file.load()
        start = saved or Position("0")
        self.in_flight = InFlight(start, 1_000)
        self.keeper = PositionKeeper(self.in_flight, file, saved)
        self.file = file
        address = StreamAddress.of("http://agent/", None, None, None, None)
        rules = FollowingRules(allow_replication=True, attempts=None)
        self.following = Following(address, rules, start, self.in_flight, Backoff(Random(1)))
        self.handed_out: list[OpLogItem] = []
        self.stream = b""

    @rule(event=EVENTS, name=NAMES)
    def the_source_changes(self, event: str, name: str) -> None:
        self.agent.log.append((event, name))

    @rule(size=SIZES, most=st.sampled_from([0, 1, 2, 30]))
    def bytes_arrive(self, size: int, most: int) -> None:
        if not self.following.is_connected:
            asked = self.following.connecting().get("Last-Event-ID")
            self.following.answered(200, STREAM)
            self.stream = self.agent.stream(asked)
        self.following.received(self.stream[:size])
        self.stream = self.stream[size:]
        self.items_are_handed_out(most)

    @rule(most=st.integers(1, 5))
    def items_are_handed_out(self, most: int) -> None:
        for _ in range(most):
            item = self.following.next_item()
            if isinstance(item, OpLogReset):
                self.keeper.save_now()
                self.handed_out.clear()  # a consumer drops what it has in its hands when it empties its copy
            if item is not None:
                self.handed_out.append(item)

    @precondition(lambda self: self.handed_out)
    @rule(choices=st.lists(st.integers(0, 20), min_size=1, max_size=8), report=st.booleans())
    def some_are_handled(self, choices: list[int], report: bool) -> None:
        for choice in choices:
            possible = self.possible()
            if possible:
                item = possible[choice % len(possible)]
                self.handle(item)
                if report:  # otherwise it crashes, or reports later, between the two
                    self.handed_out.remove(item)
                    self.in_flight.done(item.number)

    def possible(self) -> list[OpLogItem]:
        """What may be handled next: the oldest of each object; a reset before all that follows it."""
        first_of_each: dict[str, OpLogItem] = {}
        for item in self.handed_out:
            if isinstance(item, OpLogReset):
                return list(first_of_each.values()) or [item]
            first_of_each.setdefault(item.key if isinstance(item, OpLogOperation) else "live", item)
        return list(first_of_each.values())

    def handle(self, item: OpLogItem) -> None:
        if isinstance(item, OpLogReset):
            self.copy.clear()
        elif isinstance(item, OpLogOperation):
            (self.copy.discard if item.event == "delete" else self.copy.add)(item.id)

    @rule()
    def the_position_is_saved(self) -> None:
        self.keeper.save_now()

    @rule()
    def the_connection_is_cut(self) -> None:
        self.items_are_handed_out(30)  # what has arrived is not cut off any more
        if self.following.is_connected:
            self.following.lost("cut")

    @rule()
    def save_and_crash(self) -> None:
        self.keeper.save_now()
        self.crash()

    @rule()
    def crash(self) -> None:
        self.file.close()
        self.open()

    @rule(arrived=st.booleans())
    def retention_passes(self, arrived: bool) -> None:
        self.agent.kept = len(self.agent.log)
        if arrived:
            self.the_connection_is_cut()
            self.bytes_arrive(10_000, 30)

    @rule()
    def another_agent_knows_everything(self) -> None:
        self.agent.kept = 0

    @invariant()
    def the_position_is_not_ahead_of_what_is_done(self) -> None:
        ids = [item.event_id for item in self.handed_out if isinstance(item, OpLogOperation)]
        position = self.in_flight.position.event_id
        if ids and ids[0].startswith("o1.") and position and position.startswith("o1."):
            assert int(position[3:]) < int(ids[0][3:])

    def teardown(self) -> None:
        if hasattr(self, "agent"):
            self.crash()
            for _ in range(3):
                self.bytes_arrive(1 << 30, 0)
                while (item := self.following.next_item()) is not None:
                    self.handle(item)
                    self.in_flight.done(item.number)
                self.following.lost("to read what is new")
            self.file.close()
            self.folder.cleanup()
            assert self.copy == state_of(self.agent.log)


TestConsumerOfAModel = ConsumerOfAModel.TestCase
TestConsumerOfAModel.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
