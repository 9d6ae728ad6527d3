"""Outputs and readers on a real control plane: races between processes, lost answers, and no tombstones."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.support.contracts.flaky_consensus import Fault
from tests.support.contracts.flaky_session import FlakyLightweight
from tests.support.contracts.output_contract import OutputContract
from tests.support.output_samples import signed
from tests.support.output_store_world import FIRST, OutputStoreWorld
from tests.support.services.traced_session import TracedSession

from tidemark.consensus.lightweight import ATTEMPTS, LightweightConsensus, create_schema
from tidemark.consensus.objects import Undecided
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.state.handover import hand_over
from tidemark.outputs.state.retire import retire

pytestmark = pytest.mark.system

READERS = 40


@pytest.fixture(scope="module")
def keyspace(services: Any) -> Iterator[str]:
    name = f"outputs_{uuid4().hex[:8]}"
    create_schema(services.session, {"class": "SimpleStrategy", "replication_factor": "1"}, name)
    yield name
    services.session.execute(f"DROP KEYSPACE {name}")


@pytest.fixture(scope="module")
def consensus(services: Any, keyspace: str) -> LightweightConsensus:
    return LightweightConsensus(services.session, keyspace)


class TestOutputsOnCassandra(OutputContract):
    """With this module's ``consensus``."""


@pytest.mark.parametrize("faults", [1, ATTEMPTS], ids=["an answer", "every answer"])
@pytest.mark.parametrize("fault", Fault)
def test_statement_29_steps_that_get_no_answer_come_to_the_same_end(
    services: Any, keyspace: str, fault: Fault, faults: int
) -> None:
    flaky = FlakyLightweight(services.session, keyspace)
    world = OutputStoreWorld.with_second(flaky)

    def step_and_again(step: Any) -> None:
        flaky.arm(*[fault] * faults)
        try:
            step()
        except Undecided:
            flaky.disarm()
            step()
        flaky.disarm()

    step_and_again(lambda: hand_over(world.store, world.progress, 2, signed(7)))
    step_and_again(lambda: world.readers.pin("year end", 42, "ann"))
    step_and_again(lambda: retire(world.store, world.readers, 1, world.removal, signed(8)))
    flaky.land()
    assert world.states == {1: "dropped", 2: "active"}
    assert [(one.h, one.rendition) for one in world.output.handovers] == [(0, 1), (41, 2)]
    assert (world.readers.load().since, list(world.readers.load().capabilities)) == (41, ["year end"])


def test_a_reader_meets_no_tombstone_of_readers_that_ended(services: Any, keyspace: str) -> None:
    world = OutputStoreWorld(LightweightConsensus(services.session, keyspace))
    world.store.create(FIRST)
    for number in range(READERS):
        name = f"reader {number}"
        world.readers.register(Capability(name, 0, world.clock() + 1, "a test"))
        world.readers.drop(name)

    traced = TracedSession(services.session)
    world.consensus = LightweightConsensus(traced, keyspace)
    world.readers.register(Capability("one more", 0, world.clock() + 1, "a test"))
    assert list(world.readers.load().capabilities) == ["one more"]
    assert (traced.statements > 0, traced.tombstones) == (True, 0)
