"""What outputs and readers promise on every implementation of ``Consensus``: races between real threads.

A subclass named ``Test…`` gives the fixture ``consensus``; every test uses a pipeline of its own, so that a
real database can be shared.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TypeVar

import pytest
from tests.support.output_samples import signed
from tests.support.output_store_world import FIRST, OutputStoreWorld

from tidemark.clock import SECOND
from tidemark.consensus.objects import Consensus
from tidemark.outputs.errors import CreatedOtherwise
from tidemark.outputs.model.capability import GRACE, Capability
from tidemark.outputs.model.handover import EvidenceOutdated
from tidemark.outputs.model.output import Output
from tidemark.outputs.reader_errors import Forgotten, ReaderExpired, StillNeeded
from tidemark.outputs.state.handover import hand_over
from tidemark.outputs.state.progress import advance_frontier
from tidemark.outputs.state.reader_lease import held_reader
from tidemark.outputs.state.retire import retire

RACERS = 6
TERM = 60 * SECOND
Answer = TypeVar("Answer")


def at_once(*tasks: Callable[[], Answer]) -> list[Answer | Exception]:
    """What each task returned or raised; all begin together, in threads of their own."""
    together = Barrier(len(tasks))

    def run(task: Callable[[], Answer]) -> Answer | Exception:
        together.wait(30)
        try:
            return task()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def kinds(outcomes: Sequence[object]) -> list[str]:
    return sorted(type(one).__name__ for one in outcomes)


class OutputContract:
    """Outputs and readers on one control plane."""

    def test_of_several_creators_with_one_declaration_all_get_the_same_output(self, consensus: Consensus):
        world = OutputStoreWorld(consensus)
        stores = [(world.store, replace(FIRST, signed=signed(number))) for number in range(RACERS)]
        found = at_once(*[lambda store=store, first=first: store.create(first) for store, first in stores])
        assert found == [world.output] * RACERS

    def test_of_creators_with_different_declarations_one_wins_and_the_others_are_told(
        self, consensus: Consensus
    ):
        world = OutputStoreWorld(consensus)
        firsts = [replace(FIRST, settings={"writer": {"shards": number}}) for number in range(RACERS)]
        found = at_once(*[lambda first=first: world.store.create(first) for first in firsts])
        assert kinds(found) == ["CreatedOtherwise"] * (RACERS - 1) + ["Output"]
        told = [one.what for one in found if isinstance(one, CreatedOtherwise)]
        winner = world.output.active.settings["writer"]["shards"]
        assert all(one.startswith(f"settings.writer.shards was {winner} and is now ") for one in told)

    def test_statement_29_what_was_acknowledged_another_process_finds(self, consensus: Consensus):
        world = OutputStoreWorld.handed_over(consensus)
        world.readers.pin("year end", 20, "ann")
        other = OutputStoreWorld(consensus)
        other.pipeline = world.pipeline
        assert (other.output, other.states) == (world.output, {1: "superseded", 2: "active"})
        assert other.readers.load() == world.readers.load()

    def test_statement_15_of_several_deliveries_at_once_none_moves_the_frontier_back(
        self, consensus: Consensus
    ):
        world = OutputStoreWorld.begun(consensus)
        world.bind(20)
        world.finish(1)
        found = at_once(*[lambda: advance_frontier(world.store, world.progress).frontier] * RACERS)
        assert found == [21] * RACERS
        assert consensus.whole(world.store.key).version == 3

    def test_statement_14_of_handovers_to_different_renditions_at_once_there_is_one(
        self, consensus: Consensus
    ):
        world = OutputStoreWorld.with_second(consensus)
        world.build()
        found = at_once(
            *[
                lambda number=number: hand_over(world.store, world.progress, number, signed(number))
                for number in (2, 3)
            ]
        )
        assert kinds(found) == ["EvidenceOutdated", "Handover"]
        assert [one.rendition for one in world.output.handovers] == [1, world.output.active.number]
        (refused,) = (one for one in found if isinstance(one, EvidenceOutdated))
        assert refused.changed == (f"rendition {world.output.active.number} instead of 1",)

    def test_statement_17_a_handover_and_deliveries_at_once_rewrite_no_history(self, consensus: Consensus):
        world = OutputStoreWorld.with_second(consensus)
        world.bind_nothing(60)

        def deliver() -> dict[int, int]:
            output = advance_frontier(world.store, world.progress)
            return {t: output.resolve(t).number for t in range(output.frontier)}

        def switch() -> dict[int, int]:
            return {world.hand_over(2): 2}

        for told in at_once(switch, *[deliver] * (RACERS - 1)):
            assert isinstance(told, dict)
            assert {t: world.output.resolve(t).number for t in told} == told

    def test_statement_25_readers_and_a_retirement_at_once_exclude_each_other(self, consensus: Consensus):
        world = OutputStoreWorld.handed_over(consensus)

        def register(name: str) -> int:
            return world.readers.register(Capability(name, 20, world.clock() + TERM, "a test"))

        def remove() -> Output:
            return retire(world.store, world.readers, 1, world.removal, signed(9))

        readers = [lambda name=f"reader {number}": register(name) for number in range(RACERS)]
        dropped, *registered = at_once(remove, *readers)
        if isinstance(dropped, Output):
            assert all(isinstance(one, Forgotten) for one in registered)
            assert world.removal.places == {"accounts_r2"}
        else:
            assert isinstance(dropped, StillNeeded)
            assert registered == [0] * RACERS
            assert world.removal.places == {"accounts", "accounts_r2"}

    def test_statement_22_readers_at_once_all_hold_their_times_until_they_expire(self, consensus: Consensus):
        world = OutputStoreWorld.begun(consensus)
        names = [f"reader {number}" for number in range(RACERS)]
        deadline = world.clock() + TERM
        at_once(
            *[
                lambda name=name: world.readers.register(Capability(name, 20, deadline, "a test"))
                for name in names
            ]
        )
        world.clock.now += TERM + GRACE - 1
        renewed, *gone = names
        world.readers.renew(renewed, TERM)
        world.clock.now += 1
        assert sorted(one.reader for one in world.readers.expire()) == sorted(gone)
        for name in gone:
            with pytest.raises(ReaderExpired):
                world.readers.move_forward(name, 30)
        assert list(world.readers.load().capabilities) == [renewed]

    def test_of_two_retirements_at_once_both_end_and_one_place_is_dropped(self, consensus: Consensus):
        world = OutputStoreWorld.handed_over(consensus)
        found = at_once(*[lambda: retire(world.store, world.readers, 1, world.removal, signed(9))] * 2)
        assert kinds(found) == ["Output", "Output"]
        assert (world.states, world.removal.places) == ({1: "dropped", 2: "active"}, {"accounts_r2"})

    def test_a_reader_is_there_while_its_block_runs(self, consensus: Consensus):
        world = OutputStoreWorld.begun(consensus)
        with held_reader(world.readers, 20, "a test") as lease:
            assert lease.while_held(lambda held: held.t) == 20
            assert len(world.readers.load().capabilities) == 1
        assert world.readers.load().capabilities == {}
