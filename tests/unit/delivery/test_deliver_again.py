"""deliver_again: what was finished is delivered once more, and no position moves."""

from types import SimpleNamespace

import pytest
from tests.support.consensus import RacingConsensus
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.clock import SECOND
from tidemark.consensus import lease_wait
from tidemark.delivery.deliver import Delivered
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.writer import Written
from tidemark.log.model.manifest import Manifest

pytestmark = pytest.mark.unit

# Deliver again


def given_delivered(house: PipelineWorld) -> Stream:
    """Three bindings of two, delivered; one more that is not."""
    for _ in range(3):
        house.publish(orders="ab")
    house.deliver(writer := Stream())
    house.publish(orders="ab")
    writer.calls = []
    return writer


def test_a_backfill_delivers_the_finished_bindings_of_its_interval_again(house):
    writer = given_delivered(house)
    house.deliver_again(writer, from_t=2_000, to_t=3_000)
    assert writer.calls == [[2, 3], [4, 5]]


def test_a_backfill_looks_for_files_of_its_own_bindings_only(house, monkeypatch):
    writer = given_delivered(house)
    asked, real = [], Manifest.files_of

    def files_of(self, binding):
        asked.append(binding.t)
        return real(self, binding)

    monkeypatch.setattr(Manifest, "files_of", files_of)
    house.deliver_again(writer, from_t=2_000, to_t=2_000)
    assert set(asked) == {2_000}


def test_a_backfill_takes_nothing_that_is_not_finished(house):
    writer = given_delivered(house)
    house.deliver_again(writer, from_t=3_000, to_t=9_000)
    assert writer.calls == [[4, 5]]


def test_a_backfill_without_a_finished_binding_is_nothing_to_do(house):
    writer = given_delivered(house)
    assert house.deliver_again(writer, from_t=4_000, to_t=9_000) == Delivered(5)


def test_a_backfill_moves_no_position_and_enters_nothing(house):
    writer = given_delivered(house)
    before = house.positions.history("stream")
    house.deliver_again(writer)
    assert (house.position(writer), house.positions.history("stream")) == (5, before)


def test_a_backfill_does_nothing_where_nothing_is_missing(house):
    writer = given_delivered(house)
    delivered = house.deliver_again(writer)
    assert (delivered.total, writer.ids) == (Written(ignored=6), [0, 1, 2, 3, 4, 5])


def test_a_backfill_writes_a_missing_file_again(house):
    for _ in range(3):
        house.publish(orders="ab")
    house.deliver(archive := house.files_writer())
    before = house.output()
    lost = sorted(before)[1]
    (house.root / "archive" / lost).unlink()
    house.deliver_again(archive)
    assert house.output() == before


def test_a_backfill_finds_a_file_that_was_changed_and_leaves_it(house):
    house.publish(orders="ab")
    house.deliver(archive := house.files_writer())
    (path,) = (house.root / "archive").glob("*.parquet")
    path.write_bytes(b"somebody's")
    delivered = house.deliver_again(archive)
    assert f"{path} is damaged" in delivered.failure
    assert (path.read_bytes(), house.gate(archive)) == (b"somebody's", None)


def test_a_backfill_of_a_writer_that_never_ran_registers_nothing(house):
    house.publish(orders="ab")
    assert house.deliver_again(Stream()) == Delivered(-1)
    assert house.positions.load("stream") is None


def test_a_backfill_that_fails_closes_no_gate(house):
    writer = given_delivered(house)
    writer.refused = {2}
    delivered = house.deliver_again(writer)
    assert (delivered.failure, house.gate(writer)) == ("ids 2 to 3: ConnectionError: no answer to 2", None)


def test_a_backfill_leaves_a_stopped_writer_alone(house):
    writer = given_delivered(house)
    house.operator.stop("stream").execute(house.deed("stop"))
    delivered = house.deliver_again(writer)
    assert (writer.calls, delivered.gate, delivered.closed_now) == ([], house.gate(writer), False)


def test_a_backfill_of_another_shape_is_refused(house):
    given_delivered(house)
    changed = Stream(kind="another")
    with pytest.raises(ShapeChanged):
        house.deliver_again(changed)
    assert changed.calls == []


def test_a_backfill_is_refused_while_the_writer_is_leased(house):
    writer = given_delivered(house)
    take(house.positions, house.state(writer), "somebody", house.clock)
    with pytest.raises(LeaseHeld):
        house.deliver_again(writer)


def test_a_backfill_counts_from_the_position_of_its_lease(tmp_path):
    """An operator rewinds between the backfill's first look and its lease."""
    consensus = RacingConsensus()
    house = PipelineWorld(tmp_path, consensus)
    writer = given_delivered(house)
    plan = house.operator.rewind("stream", 1)
    consensus.before_next_commit = lambda: plan.execute(house.deed("rewind"))
    house.deliver_again(writer)
    assert writer.calls == [[0, 1]]


def test_a_backfill_that_is_asked_to_stop_says_so(house):
    writer = given_delivered(house)
    asked = []
    writer.before_write = lambda part, writing: asked.append(True)
    delivered = house.deliver_again(writer, is_stopping=lambda: bool(asked))
    assert (writer.calls, delivered.failure) == ([[0, 1]], "asked to stop before t = 2000")


def test_a_backfill_leaves_out_what_was_acknowledged(house):
    house.publish(orders="abc")
    house.publish(orders="d")
    writer = Shelf(bad={1})
    house.deliver(writer)
    house.acknowledge(writer, 1)
    house.resume(writer)
    house.deliver(writer)
    writer.bindings.clear()
    house.deliver_again(writer)
    assert writer.ids == [0, 2, 3]


def test_a_backfill_waits_for_as_long_as_a_dead_follow_keeps_its_lease(house, monkeypatch):
    # given: a follow was killed in a round; time passes only while the backfill waits
    writer, began = given_delivered(house), house.clock.now
    take(house.positions, house.positions.load("stream"), "orders.follow run-1", house.clock)

    def sleep(seconds: float) -> None:
        house.clock.now += int(SECOND)

    waiting = SimpleNamespace(sleep=sleep, monotonic=lambda: (house.clock.now - began) / SECOND)
    monkeypatch.setattr(lease_wait, "time", waiting)
    # when
    house.deliver_again(writer, from_t=2_000, to_t=2_000)
    # then
    assert writer.calls == [[2, 3]]
