"""A writer looks at its target before it takes a binding, and settles with its readers before it moves on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld, given_stopped_at

from tidemark.delivery.operator.acknowledge import NotSettled
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Check, Past
from tidemark.log.model.binding import Binding

pytestmark = pytest.mark.unit


@dataclass
class Promising(Stream):
    """A stream whose readers are told how far it is."""

    house: PipelineWorld | None = None
    promises: list[tuple[int, int]] = field(default_factory=list)
    """What was promised, and the position at that time."""
    pasts: list[Past] = field(default_factory=list)
    discarded: list[int] = field(default_factory=list)
    strange: str | None = None
    deaf: bool = False

    def examine(self, binding: Binding, past: Past) -> None:
        self.pasts.append(past)
        if self.strange:
            raise ValueError(self.strange)

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        lease.check()
        if self.deaf:
            raise ConnectionError("no answer")
        assert self.house is not None
        self.promises.append((position, self.house.position(self)))

    def discard(self, message: Mapping[str, Any]) -> None:
        self.discarded.append(message["id"])


@pytest.fixture
def writer(house: PipelineWorld) -> Promising:
    return Promising(house=house)


def test_every_binding_is_settled_before_its_end_is_committed(house, writer):
    house.publish(orders="ab")
    house.publish(orders="c")
    house.deliver(writer)
    assert writer.promises == [(1, -1), (2, 1)]


def test_a_writer_is_told_of_its_past_before_every_binding(house, writer):
    house.publish(orders="ab")
    house.publish(orders="c", refunds="d")
    house.deliver(writer)
    assert writer.pasts == [Past(-1, -1, {}), Past(1, 1, {("orders", 0): 1})]


def test_a_rewind_does_not_make_it_forget_how_far_it_was(house, writer):
    house.publish(orders="ab")
    house.deliver(writer)
    house.rewind(writer.name, -1)
    house.deliver(writer)
    assert writer.pasts[-1] == Past(-1, 1, {})


def test_a_target_that_is_not_as_it_was_left_closes_the_gate_and_nothing_is_written(house, writer):
    house.publish(orders="ab")
    writer.strange = "somebody was here"
    gate = house.deliver(writer).gate
    assert (gate.cause, gate.reason) == (Cause.TARGET, "ValueError: somebody was here")
    assert (writer.ids, writer.promises) == ([], [])


def test_a_resume_looks_too(house, writer):
    house.publish(orders="ab")
    writer.strange = "somebody was here"
    house.deliver(writer)
    assert house.resume(writer).gate.failures == 2
    assert writer.ids == []


def test_right_before_the_wall_everything_is_settled(house, writer):
    given_stopped_at(house, 4, writer)
    assert writer.promises == [(3, -1)]


def test_a_promise_that_is_not_taken_leaves_the_position_and_names_the_range(house, writer):
    writer.deaf = True
    given_stopped_at(house, 4, writer)
    gate = house.gate(writer)
    assert (house.position(writer), gate.cause, gate.first_id, gate.last_id) == (-1, Cause.TARGET, 0, 5)


def test_a_resume_settles_whatever_it_commits(house, writer):
    given_stopped_at(house, 4, writer)
    writer.bad = {5}
    house.resume(writer)
    assert writer.promises[-1] == (4, 3)


def test_a_resume_whose_promise_is_not_taken_stays_where_it_is(house, writer):
    given_stopped_at(house, 4, writer)
    writer.bad, writer.deaf = {5}, True
    resumed = house.resume(writer)
    assert (resumed.position, resumed.gate.cause) == (3, Cause.TARGET)


def test_an_acknowledgement_discards_and_settles_before_the_position_moves(house, writer):
    given_stopped_at(house, 4, writer)
    house.acknowledge(writer, 4)
    assert (writer.discarded, writer.promises[-1], house.position(writer)) == ([4], (4, 3), 4)


def test_an_acknowledgement_that_cannot_be_settled_is_kept_and_moves_nothing(house, writer):
    given_stopped_at(house, 4, writer)
    writer.deaf = True
    with pytest.raises(NotSettled, match="acknowledged"):
        house.acknowledge(writer, 4)
    assert (house.position(writer), house.positions.acknowledged(writer.name)) == (3, {4})


def test_what_was_acknowledged_without_being_settled_is_passed_by_the_next_resume(house, writer):
    given_stopped_at(house, 4, writer)
    writer.deaf = True
    with pytest.raises(NotSettled):
        house.acknowledge(writer, 4)
    writer.deaf = False
    house.resume(writer)
    assert (house.position(writer), house.gate(writer), 4 in writer.ids) == (5, None, False)
