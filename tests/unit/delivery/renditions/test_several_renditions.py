"""Deliveries to several renditions of a writer: each by itself, the active one first."""

from datetime import timedelta

import pytest
from tests.support.faults import Killed, at_point, kill_at
from tests.support.rendition_world import CONNECTIONS, WRITER, RenditionWorld

from tidemark.clock import SECOND
from tidemark.consensus.objects import ObjectKey, ObjectKind
from tidemark.delivery.renditions import declared
from tidemark.delivery.renditions.errors import (
    CompactedMeanwhile,
    PlaceNotEmpty,
    RenditionGivenUp,
    RenditionNotDeclared,
)
from tidemark.delivery.renditions.selection import operators_name, resolved_name
from tidemark.delivery.state.ended_consumer import end_consumer
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import registered_writers
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.delivery.writer import TargetIdentity
from tidemark.faults import FaultPoint
from tidemark.outputs.errors import OutputMissing
from tidemark.writers.files.writer import FilesWriter
from tidemark.writers.renditions import build_declared

pytestmark = pytest.mark.unit

GOOD = [b'{"a": 1}', b'{"a": 2}']
BAD = [b"no JSON"]
PICKED = {"transforms": [{"pick": {"fields": ["a"]}}]}
FUNCTION = {"transforms": [{"function": {"path": "tests.support.collection_samples.with_time"}}]}


@pytest.fixture
def world(tmp_path) -> RenditionWorld:
    """Two messages are delivered to the first rendition."""
    world = RenditionWorld(tmp_path)
    world.publish(orders=GOOD)
    world.run()
    return world


def waited_for(world):
    found = registered_writers(world.control, world.positions, [WRITER])
    return {one.name: one.position for one in found}


# The first rendition


def test_every_kind_of_writer_has_an_output_with_its_settings_and_its_place(world):
    (first,) = world.found.renditions
    assert (first.number, first.state, first.place) == (1, "active", str(world.root / WRITER))
    assert first.settings["writer"]["format"] == "jsonl"
    assert first.settings["shape"] == build_declared(world.pipeline, CONNECTIONS, WRITER).writer.shape


def test_the_frontier_of_every_kind_advances_also_where_nothing_was_delivered(world):
    head = world.control.bindings_head()
    assert world.found.frontier == head.upper
    world.control.advance_upper(head, head.upper + 5_000)
    world.run()
    assert world.found.frontier == head.upper + 5_000


def given_of_an_earlier_version(world):
    """The writer is registered and delivered to, and has no output."""
    world.store.remove(world.found)
    with pytest.raises(OutputMissing):
        world.store.require()


def test_a_writer_that_an_earlier_version_registered_gets_its_output_with_the_next_run(world):
    first = world.found
    given_of_an_earlier_version(world)
    world.publish(orders=GOOD)
    world.run()
    (made,) = world.found.renditions
    assert (made.settings, made.place) == (first.active.settings, first.active.place)
    assert len(world.files()) == 2


def test_one_whose_file_changed_with_the_upgrade_goes_on_as_it_was_registered(world):
    given_of_an_earlier_version(world)
    world.keys = {"path": str(world.root / "elsewhere"), **PICKED}
    world.publish(orders=GOOD)
    (done,) = world.run().values()
    assert (done.failure, done.gate, len(world.files())) == (None, None, 2)
    assert not (world.root / "elsewhere").exists()
    assert world.found.active.place == str(world.root / WRITER)


def test_a_writer_whose_output_cannot_be_made_after_an_upgrade_fails_by_itself(world, monkeypatch):
    given_of_an_earlier_version(world)

    def refuse(*place: object) -> None:
        raise OutputMissing("orders", WRITER)

    monkeypatch.setattr("tidemark.app.consumers.build_declared", refuse)
    (one,) = world.consumers.choose(world.log)
    assert (one.name, isinstance(one.failure, OutputMissing)) == (WRITER, True)


def test_a_run_that_delivers_nothing_reads_an_output_three_times(world, monkeypatch):
    seen: list[ObjectKey] = []
    whole = world.consensus.whole
    monkeypatch.setattr(world.consensus, "whole", lambda key: seen.append(key) or whole(key))
    world.run()
    assert len([key for key in seen if key.kind is ObjectKind.OUTPUT]) == 3


# A file that differs


def test_changed_settings_are_reported_and_the_active_rendition_goes_on_with_its_own(world):
    world.keys = {**PICKED, "path": str(world.root / "elsewhere"), "soak": "2h"}
    world.publish(orders=[b'{"a": 3, "b": 4}'])
    consumers = world.consumers
    consumers.choose(world.log)
    assert {one.key for one in consumers.differences()[WRITER]} == {"path", "transforms"}
    world.run()
    assert not (world.root / "elsewhere").exists()
    newest = max(world.root.glob("archive/*.jsonl"))
    assert "4}" in newest.read_text()  # no transform has left `b` out


def test_a_file_that_is_as_it_was_differs_in_nothing(world):
    consumers = world.consumers
    consumers.choose(world.log)
    assert consumers.differences() == {}
    world.keys = {"soak": "1h", "reconcile": 3, "on_change": "rebuild"}
    consumers = world.consumers
    consumers.choose(world.log)
    assert consumers.differences() == {}


# Several


def test_a_run_delivers_to_the_active_one_first_and_to_the_one_that_is_built(world):
    world.declare()
    assert list(world.run()) == ["archive", "archive.r2"]
    assert world.files(2) == world.files(1)
    assert (world.position_of(1), world.position_of(2)) == (1, 1)


def test_two_processes_that_begin_a_rendition_at_once_both_go_on_with_it(world, monkeypatch):
    world.declare()
    identify = FilesWriter.identify

    def slow(writer: FilesWriter) -> TargetIdentity | None:
        monkeypatch.setattr(FilesWriter, "identify", identify)
        assert world.build(holder="a faster process").position == 1
        return identify(writer)

    monkeypatch.setattr(FilesWriter, "identify", slow)
    assert (world.build().position, world.files(2) == world.files(1)) == (1, True)


def test_the_output_of_a_faster_process_is_not_taken_for_that_of_a_forgotten_writer(tmp_path, monkeypatch):
    world = RenditionWorld(tmp_path)
    world.publish(orders=GOOD)
    load, missed = Positions.load, []

    def slow(positions: Positions, name: str) -> WriterState | None:
        state = load(positions, name)
        missed.append(state)
        if len(missed) == 3:  # the last look before the consumer is registered
            monkeypatch.setattr(Positions, "load", load)
            world.run("a faster process")
        return state

    monkeypatch.setattr(Positions, "load", slow)
    removed = at_point(monkeypatch, FaultPoint.OUTPUT_FORGOTTEN, lambda: None)
    world.run()
    assert (removed, missed[-1], world.found.frontier > 0) == ([], None, True)


def test_one_that_is_further_behind_than_a_run_delivers_is_left_to_its_build(world):
    world.limits = {"max_records_per_run": 1}
    world.declare()
    assert list(world.run()) == ["archive"]
    assert world.build().position == 1
    assert list(world.run()) == ["archive", "archive.r2"]


def test_a_closed_gate_of_one_that_is_built_stops_nothing_else(world):
    world.keys = PICKED
    world.declare()
    world.publish(orders=BAD)
    done = world.run()
    assert (done["archive"].gate, done["archive"].position) == (None, 2)
    gate = done["archive.r2"].gate
    assert gate is not None
    assert (gate.cause, gate.first_id, done["archive.r2"].position) == (Cause.MESSAGE, 2, 1)
    world.publish(orders=GOOD)
    assert world.run()["archive"].position == 4
    assert world.found.frontier == world.control.bindings_head().upper


def test_a_closed_gate_of_the_active_one_stops_nothing_else(tmp_path):
    world = RenditionWorld(tmp_path, keys=PICKED)
    world.publish(orders=GOOD)
    world.publish(orders=BAD)
    world.run()
    world.keys = {}
    world.declare()
    done = world.run()
    assert done["archive"].gate is not None
    assert (done["archive.r2"].gate, done["archive.r2"].position) == (None, 2)


def test_acknowledged_ids_are_not_inherited(tmp_path):
    world = RenditionWorld(tmp_path, keys=PICKED)
    world.publish(orders=[*GOOD, *BAD])
    world.run()
    world.acknowledge(build_declared(world.pipeline, CONNECTIONS, WRITER).writer, 2)
    world.run()
    assert world.position_of(1) == 2
    world.declare()
    gate = world.run()["archive.r2"].gate
    assert gate is not None
    assert gate.first_id == 2
    assert world.positions.acknowledged("archive.r2") == frozenset()


def test_other_code_stops_its_rendition_alone_and_it_never_goes_on_with_it(world, monkeypatch):
    monkeypatch.setenv("TIDEMARK_TRANSFORMS", "tests")
    world.keys = FUNCTION
    code = dict(world.declare().code)
    world.publish(orders=GOOD)
    with monkeypatch.context() as patch:
        patch.setattr(declared, "_digests", lambda modules: dict.fromkeys(code, "other") if modules else {})
        done = world.run()
        assert done["archive"].position == 3
        gate = done["archive.r2"].gate
        assert gate is not None
        assert (gate.cause, done["archive.r2"].position, dict(world.files(2))) == (Cause.CODE, -1, {})
    assert world.run()["archive.r2"].gate is not None


# After a handover


@pytest.fixture
def handed_over(world) -> RenditionWorld:
    """Readers use the second rendition."""
    world.declare()
    world.run()
    world.hand_over()
    return world


def test_a_superseded_one_is_delivered_to_until_its_soak_is_over(handed_over):
    handed_over.publish(orders=GOOD)
    # ``archive`` is the active one, which is the second; the first one has its consumer's name.
    assert list(handed_over.run()) == ["archive", "archive.r1"]
    assert (handed_over.position_of(1), handed_over.position_of(2)) == (3, 3)
    handed_over.clock.now += int(timedelta(hours=24).total_seconds() * SECOND)
    handed_over.publish(orders=GOOD)
    assert list(handed_over.run()) == ["archive"]
    assert (handed_over.position_of(1), handed_over.position_of(2)) == (3, 5)


def test_the_name_of_a_writer_means_its_active_rendition(handed_over):
    positions = handed_over.positions
    assert resolved_name(positions, "archive") == "archive.r2"
    assert resolved_name(positions, "archive.r1") == "archive"
    assert (operators_name(positions, "archive"), operators_name(positions, "archive.r2")) == (
        "archive.r1",
        "archive.r2",
    )


def test_a_delivery_after_the_end_of_a_rendition_does_nothing(handed_over):
    end_consumer(handed_over.positions, handed_over.control, "archive", "retire", handed_over.clock)
    handed_over.publish(orders=GOOD)
    handed_over.run()
    assert (handed_over.position_of(1), handed_over.position_of(2)) == (1, 3)
    assert waited_for(handed_over) == {"archive.r2": 3}


# Verification


def test_progress_after_a_verification_withdraws_it(world):
    world.declare()
    world.run()
    world.verify()
    assert world.states == {1: "active", 2: "verified"}
    world.run()
    assert world.states == {1: "active", 2: "verified"}
    world.publish(orders=GOOD)
    world.run()
    assert world.states == {1: "active", 2: "building"}


# Registration


def test_compaction_waits_for_a_rendition_from_its_declaration_on(world):
    assert waited_for(world) == {"archive": 1}
    world.declare()
    assert waited_for(world) == {"archive": 1, "archive.r2": -1}
    world.abandon()
    assert waited_for(world) == {"archive": 1}


def test_a_place_with_files_is_refused(world):
    world.declare()
    (world.root / "archive.r2").mkdir()
    (world.root / "archive.r2" / "old.jsonl").write_text("{}")
    with pytest.raises(PlaceNotEmpty, match=r"orders/archive: rendition 2 cannot begin: .*old\.jsonl"):
        world.build()
    assert world.positions.load("archive.r2") is None


def test_a_rendition_that_was_not_declared_is_refused(world):
    world.declare()
    consumer = world.consumers.one("archive.r2", world.log)
    writer = consumer.writer
    world.store.remove(world.found)
    with pytest.raises(RenditionNotDeclared, match="there is no rendition 2"):
        world.deliver(writer)


def test_one_that_was_given_up_gets_nothing(world):
    world.declare()
    consumer = world.consumers.one("archive.r2", world.log)
    world.abandon()
    with pytest.raises(RenditionGivenUp, match="rendition 2 is abandoned"):
        world.deliver(consumer.writer)
    assert dict(world.files(2)) == {}
    assert list(world.run()) == ["archive"]


def test_a_build_ends_before_its_next_binding_where_it_is_given_up(world, monkeypatch):
    world.publish(orders=GOOD)
    world.declare()
    at_point(monkeypatch, FaultPoint.DELIVER_COMMITTED, world.abandon)
    assert world.build().position == 1
    assert len(world.files(2)) == 1


def test_a_compaction_between_declaration_and_registration_is_refused(world, monkeypatch):
    world.declare()
    consumer = world.consumers.one("archive.r2", world.log)
    monkeypatch.setattr("tidemark.delivery.renditions.output.WriterOutput.since", lambda self: 7_000)
    with pytest.raises(CompactedMeanwhile, match="only answer from 7000 on"):
        world.deliver(consumer.writer)
    assert list(world.control.log_rows("writer/")) == ["writer/archive"]


@pytest.mark.parametrize(
    "point", [FaultPoint.REGISTER_ENROLLED, FaultPoint.REGISTER_REGISTERED, FaultPoint.DELIVER_COMMITTED]
)
def test_29_a_build_that_was_killed_goes_on(world, monkeypatch, point):
    world.publish(orders=GOOD)
    world.declare()
    kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.build()
    world.clock.now += 61 * SECOND
    assert world.build().position == 3
    world.run()
    assert world.files(2) == world.files(1)


def test_29_an_upgrade_that_was_killed_is_finished_by_the_next_run(world, monkeypatch):
    given_of_an_earlier_version(world)
    kill_at(monkeypatch, FaultPoint.RENDITION_CREATED)
    with pytest.raises(Killed):
        world.run()
    world.run()
    assert [one.number for one in world.found.renditions] == [1]
