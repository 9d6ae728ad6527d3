"""Clients of real agents that are cut off, or come back elsewhere or late: none of them misses anything."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.services.agents import StartedAgent, operation
from tests.support.services.cutting_proxy import given_cuts
from tests.support.services.served_pipelines import ServedPipeline, served_pipeline
from tests.support.services.stream_copies import (
    FollowingClient,
    OperationSource,
    StreamCopy,
    changing,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.system

CUTS = 50
OBJECTS = 3_000


@pytest.fixture
def served(services: Any, tmp_path: Path) -> Iterator[ServedPipeline]:
    with served_pipeline(services, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def filled(
    services: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServedPipeline, StartedAgent, OperationSource]]:
    """A pipeline with many objects in its collection, some of them deleted, and its agent."""
    with (
        served_pipeline(services, tmp_path_factory.mktemp("filled")) as served,
        served.agents.agent() as agent,
    ):
        source = OperationSource(agent.url)
        for first in range(0, OBJECTS, 500):
            source.put(*(f"x{number}" for number in range(first, first + 500)), parents=["user/1"])
        source.delete(*(f"x{number}" for number in range(0, OBJECTS, 9)))
        served.replicate()
        yield served, agent, source


def in_order(operations: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The events of each object."""
    found = defaultdict(list)
    for event, key in operations:
        found[key].append(event)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_R22_R26_R27_C16_C17_cut_off_50_times_in_a_replication_a_copy_is_what_the_source_is(
    filled: tuple[ServedPipeline, StartedAgent, OperationSource], seed: int
) -> None:
    served, agent, source = filled
    random, allowances = Random(seed), Random(f"cuts {seed}")

    def allowance() -> int | None:
        if proxy.cuts == CUTS:
            return None
        return allowances.randrange(300, allowances.choice((3_000, 40_000)))

    def change(number: int) -> None:
        ids = [f"x{random.randrange(OBJECTS + 100)}" for _ in range(5)]
        if number % 3:
            source.put(*ids, parents=[f"user/{number}"])
        else:
            source.delete(*ids)
        if number % 20 == 19:
            served.replicate()

    copy = StreamCopy(position="0")
    with given_cuts(agent.port, allowance) as proxy, FollowingClient(lambda: proxy.url, copy):
        with changing(change):
            wait_until(lambda: proxy.cuts == CUTS and copy.is_live, what=f"the end; {copy.modes}")
        wait_until(lambda: copy.objects == source.objects, 20, what="the copy to be the source")
    assert set(copy.modes) <= {"replication", "exact"}


def test_R1_R10_one_process_takes_datagrams_and_streams_them_at_the_same_port(
    filled: tuple[ServedPipeline, StartedAgent, OperationSource],
) -> None:
    _, agent, _ = filled
    copy = StreamCopy()
    with FollowingClient(lambda: agent.url, copy):
        wait_until(lambda: copy.position, what="the stream")
        agent.send_datagrams(operation("by-udp", event="insert"), operation("by-udp", event="delete"))
        wait_until(lambda: len(copy.operations) == 2, 20, what="two operations")
    assert copy.operations == [("insert", "video/by-udp"), ("delete", "video/by-udp")]


def test_two_agents_a_client_that_alternates_between_them_misses_nothing_and_gets_nothing_twice(
    served: ServedPipeline,
) -> None:
    with served.agents.agent() as first, served.agents.agent() as second:
        sources = [OperationSource(first.url), OperationSource(second.url)]
        random, copy, urls = Random(5), StreamCopy(), cycle([first.url, second.url])
        enough = iter(random.randrange(1, 60) for _ in count())
        wanted = [next(enough)]

        def is_enough() -> bool:
            if len(copy.operations) < wanted[0]:
                return False
            wanted[0] = len(copy.operations) + next(enough)
            return True

        copy.follow_once(first.url, lambda: copy.position)

        def change(number: int) -> None:
            source = sources[number % 2]
            ids = {f"x{number % 2}-{random.randrange(30)}" for _ in range(8)}
            (source.delete if number % 5 == 4 else source.put)(*ids)

        with changing(change) as changes:
            while changes() < 150 or len(copy.modes) < 60:
                assert copy.follow_once(next(urls), is_enough)
        acknowledged = [*sources[0].acknowledged, *sources[1].acknowledged]
        missing = len(acknowledged) - len(copy.operations)
        if missing > 0:
            copy.follow_once(next(urls), lambda: len(copy.operations) >= len(acknowledged))
    assert Counter(copy.operations) == Counter(acknowledged)
    assert in_order(copy.operations) == in_order(acknowledged)
    assert set(copy.modes[1:]) == {"exact"}


def test_R16_retention_has_passed_a_client_and_the_commit_log_has_what_it_missed(
    served: ServedPipeline,
) -> None:
    # Given: a client that is away, and changes that Kafka has forgotten but the commit log has.
    with served.agents.agent() as agent:
        source, copy = OperationSource(agent.url), StreamCopy()
        copy.follow_once(agent.url, lambda: copy.position)
        source.put(*(f"x{number}" for number in range(200)), parents=["user/1"])
        source.put("x1", "x2", parents=["user/2"])
        served.capture()
        source.delete("x3", "x4")
        served.capture()
        served.forget_all()
        source.put("x3", "after")

    # When: it comes back, to an agent that has not seen any of it.
    with served.agents.agent() as agent:
        copy.follow_once(agent.url, lambda: len(copy.operations) >= len(source.acknowledged))

    # Then: it is sent every operation, not the state.
    assert copy.modes == ["live", "exact"]
    assert in_order(copy.operations) == in_order(source.acknowledged)
    assert copy.objects == source.objects


def test_R18_H5_C14_C24_where_operations_are_lost_a_client_is_sent_what_has_changed_deletes_included(
    served: ServedPipeline,
) -> None:
    # Given: a client that is away while operations are lost for good, and the loss is accepted.
    with served.agents.agent() as agent:
        source, copy = OperationSource(agent.url), StreamCopy()
        copy.follow_once(agent.url, lambda: copy.position)
        source.put(*(f"x{number}" for number in range(100)), parents=["user/1"])
        copy.follow_once(agent.url, lambda: len(copy.operations) >= 100)
        served.replicate()
        source.delete("x3", "x4")
        source.put("x5", "before", parents=["user/2"])
        served.replicate()
        source.put(*(f"lost-{number}" for number in range(20)))
        served.forget_all()
        source.delete("x6", *(f"lost-{number}" for number in range(20)))
        source.put("x7", "after")
    loss = served.runs.bind("finds-the-loss")
    assert loss.code == 1, loss
    assert served.runs.accept("the records are gone").code == 0
    served.replicate()

    # When: it comes back.
    with served.agents.agent() as agent:
        copy.follow_once(agent.url, lambda: copy.is_live)
        fresh = StreamCopy(position="0")
        fresh.follow_once(agent.url, lambda: fresh.is_live)

    # Then: it is told of deletes too, is not told to begin anew, and has what a new client has.
    assert (copy.modes[-1], copy.resets) == ("fallback", 0)
    assert copy.objects == fresh.objects == source.objects
    assert {"video/x3", "video/x6"} <= {key for event, key in copy.operations if event == "delete"}
    assert "video/x50" not in {key for _, key in copy.operations[100:]}
