"""A journal on a run that delivers nothing: tables that were emptied or dropped meanwhile are noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.found_in_memory import FoundInMemory
from tests.support.recreated_samples import TopicsLog, TopicsWorld
from tests.support.recreated_world import World

from tidemark.delivery.state.writer_state import Cause
from tidemark.journal_tables.reader import TablesMissing
from tidemark.log.expectations import Suite
from tidemark.spark.jobs.reconcile import VerifiedInterval, reconcile_writer
from tidemark.verification import reconcile
from tidemark.verification.journal.entities import Case
from tidemark.verification.reconcile import StillDifferent, reconcile_pointers, reopen_gate
from tidemark.verification.reconciliation import read

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A pipeline whose journal has everything."""
    world = World(tmp_path, monkeypatch)
    world.produce("orders", "abc")
    world.run()
    assert world.seems_well()

    def case(writer, log, positions):
        return Case(writer, log, positions, FoundInMemory(world.journal))

    monkeypatch.setattr(reconcile.Case, "of", case)
    return world


def look(world: World):
    return reconcile_pointers(world.journal_writer, world.log, world.positions, "run", world.clock)


def resume(world: World) -> None:
    gate = world.positions.load("journal").gate
    reopen_gate(
        *(world.journal_writer, gate, world.log, world.positions),
        *("resume", world.shown.append),
        clock=world.clock,
    )


def cause(world: World) -> Cause | None:
    state = world.positions.load("journal")
    return state.gate.cause if state and state.gate else None


def test_tables_that_are_as_the_log_says_stay_open_and_keep_no_record(world):
    assert look(world) is None
    assert cause(world) is None
    assert read("orders", str(world.root / "log"), "journal", world.log.end) is None


def test_tables_that_were_emptied_close_the_gate_with_the_pointers_that_are_missing(world):
    world.drop_tables()
    record = look(world)
    assert "pointer" in record.reason
    assert cause(world) is Cause.VERIFICATION
    assert read("orders", str(world.root / "log"), "journal", world.log.end) == record


def test_a_keyspace_that_was_dropped_closes_the_gate_until_it_is_back_as_it_was(world, monkeypatch):
    def missing(*_):
        raise TablesMissing("journal", "keyspace journal does not exist")

    with monkeypatch.context() as patch:
        patch.setattr(reconcile.Case, "of", missing)
        record = look(world)
    assert "keyspace journal does not exist" in record.reason
    before = world.journal
    world.drop_tables()
    with pytest.raises(StillDifferent, match="pointer"):
        resume(world)
    world.journal = before
    resume(world)
    assert cause(world) is None


def test_a_journal_that_never_ran_has_nothing_to_compare(tmp_path, monkeypatch):
    assert look(World(tmp_path, monkeypatch)) is None


def test_what_another_run_has_delivered_meanwhile_is_no_pointer_too_far(world):
    log = world.log
    world.produce("orders", "abc")
    world.run()
    assert reconcile_pointers(world.journal_writer, log, world.positions, "run", world.clock) is None


@pytest.mark.parametrize(
    "extent", [VerifiedInterval(), VerifiedInterval(everything=True)], ids=["a sample", "everything"]
)
def test_a_journal_that_waits_for_the_first_message_of_a_topic_made_again_has_nothing_to_compare(
    extent, monkeypatch
):
    def missing(*_):
        raise TablesMissing("journal", "keyspace second does not exist")

    # given: it is registered behind what the log has, and nothing was ever written
    monkeypatch.setattr(Case, "of", missing)
    world = TopicsWorld(TopicsLog())
    world.actions.publish_topics(a="k:A1")
    world.actions.recreate("a")
    assert world.deliver_recreated().position == 0
    # when
    journal, log, positions = world.recreated(), world.log, world.positions
    after_delivery = reconcile_writer(None, journal, log, positions, Suite(), extent, -1, "run")
    on_an_idle_run = reconcile_pointers(journal, log, positions, "run", world.clock)
    # then
    assert (after_delivery, on_an_idle_run, world.gate(journal)) == (None, None, None)
