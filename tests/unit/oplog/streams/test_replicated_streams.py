"""Replications: all objects or those that have changed, and the way from there to what happens now."""

import random
from dataclasses import replace

import pytest
from tests.support.memory_oplog import MemoryLog, MemoryTopic
from tests.support.oplog_samples import correction, operation
from tests.support.stream_clients import QUICK, Event, StreamClient, StreamWorld, given_agent, in_loop

from tidemark.operations.filters import OperationFilter
from tidemark.operations.operation import EventName
from tidemark.oplog.agent.streams.settings import UnknownId
from tidemark.outputs.reader_errors import ReaderExpired

pytestmark = pytest.mark.unit

INSERT, UPDATE, DELETE = EventName.INSERT, EventName.UPDATE, EventName.DELETE
T = 1_764_158_400_000_000
"""A time of a binding, in µs."""


async def replicated(world: StreamWorld, last_event_id: str = "0", **options: object) -> StreamClient:
    client = world.connect(last_event_id, **options)
    await client.until(lambda: "live" in client.told or client.is_over)
    return client


@in_loop
async def test_C10_H6_H7_an_empty_collection_is_replicated() -> None:
    async with given_agent() as world:
        client = await replicated(world, "0")
        assert client.told == ["reset", "live"]
        world.topic.send(operation("a"))
        await client.gets("reset", "live", "update a")


@in_loop
async def test_C11_R22_R25_deleted_objects_are_not_replicated() -> None:
    async with given_agent() as world:
        for id_, event in (("a", INSERT), ("b", INSERT), ("b", DELETE)):
            world.topic.send(operation(id_, event))
        world.log.bind(T)
        assert (await replicated(world)).told == ["reset", "insert a", "live"]


@in_loop
async def test_C12_an_object_is_replicated_once_as_it_is() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a", INSERT))
        world.topic.send(operation("a", UPDATE, parents=["user/1"]))
        world.log.bind(T)
        client = await replicated(world)
        assert client.told == ["reset", "insert a", "live"]
        assert client.events[2].data["parents"] == ["user/1"]


@in_loop
async def test_S21_an_object_that_a_synchronisation_has_inserted_is_replicated() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a", INSERT), correction(0))
        world.log.bind(T)
        assert (await replicated(world)).told == ["reset", "insert a", "live"]


@in_loop
async def test_C13_R23_R24_objects_that_have_changed_since_a_time() -> None:
    async with given_agent() as world:
        for number, id_ in enumerate("abc"):
            world.topic.send(operation(id_))
            world.log.bind(T + number * 20_000_000)
        since = str((T + 30_000_000) // 1000)
        client = await replicated(world, since)
        assert (sorted(client.told), client.headers["last-event-id"]) == (
            ["insert b", "insert c", "live"],
            since,
        )


@in_loop
async def test_a_replication_since_a_time_has_deletes() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        world.topic.send(operation("a", DELETE))
        world.log.bind(T + 60_000_000)
        client = await replicated(world, str((T + 60_000_000) // 1000))
        assert client.told == ["delete a", "live"]


@in_loop
async def test_the_parameter_since_takes_a_time_as_text() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = world.connect(since="2025-11-26T13:00:00+01:00")
        await client.gets("insert a", "live")


@in_loop
async def test_a_time_that_the_collection_has_forgotten_resets() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        world.objects.since = T
        client = await replicated(world, "1000")
        assert (client.headers["x-oplog-mode"], client.told) == ("reset", ["reset", "insert a", "live"])


@in_loop
async def test_G1_C15_an_operation_just_before_a_replication_arrives() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        client = await replicated(world)
        await client.gets("reset", "live", "update a")


@in_loop
async def test_G2_R27_operations_that_the_collection_does_not_have_yet_follow_its_rows() -> None:
    async with given_agent(settings=replace(QUICK, ring_events=2)) as world:
        for id_ in "abcd":
            world.topic.send(operation(id_))
        world.log.bind(T)
        for id_ in "efghij":
            world.topic.send(operation(id_))
        await world.caught_up()
        client = await replicated(world)
        await client.until(lambda: len(client.told) == 12)
        assert sorted(client.told[6:]) == [f"update {one}" for one in "efghij"]


@in_loop
async def test_R21_a_filter_applies_to_a_replication() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a", parents=["user/1"]))
        world.topic.send(operation("b", parents=["user/2"]))
        world.log.bind(T)
        client = await replicated(world, filter=OperationFilter.of(parents=["user/1"]))
        assert client.told == ["reset", "insert a", "live"]


@in_loop
async def test_C19_many_objects_of_one_time_end() -> None:
    async with given_agent() as world:
        for number in range(500):
            world.topic.send(operation(str(number)))
        world.log.bind(T)
        world.objects.page = 7
        client = await replicated(world)
        assert sorted(client.told[1:-1]) == sorted(f"insert {number}" for number in range(500))


@in_loop
async def test_C17_G4_a_delete_during_an_interruption_arrives() -> None:
    async with given_agent() as world:
        for id_ in "abcdef":
            world.topic.send(operation(id_))
        world.log.bind(T)
        client = await replicated(world)
        half = client.events[4]
        gone = half.data["id"]
        world.topic.send(operation(gone, DELETE))
        again = await replicated(world, half.id)
        await again.until(lambda: f"delete {gone}" in again.told)
        assert again.headers["last-event-id"] == half.id


@in_loop
async def test_R26_an_interrupted_replication_goes_on_at_its_token() -> None:
    async with given_agent() as world:
        for id_ in "abcdef":
            world.topic.send(operation(id_))
        world.log.bind(T)
        client = await replicated(world)
        for event in client.events[2:-1]:
            again = await replicated(world, event.id)
            place = client.told.index(str(event))
            assert again.told == client.told[place:]


@in_loop
async def test_G5_an_interrupted_fallback_still_has_deletes() -> None:
    async with given_agent() as world:
        for id_ in "abcdef":
            world.topic.send(operation(id_))
        world.log.bind(T)
        for id_ in "abcdef":
            world.topic.send(operation(id_, DELETE))
        world.log.bind(T + 60_000_000)
        client = await replicated(world, str((T + 60_000_000) // 1000))
        again = await replicated(world, client.events[2].id)
        assert again.told == client.told[1:]


@in_loop
async def test_C18_G4_a_delete_right_after_live_arrives() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = await replicated(world)
        last_id = await client.leave()
        world.topic.send(operation("a", DELETE))
        again = await world.opened(last_id)
        await again.gets("delete a")


@in_loop
async def test_a_replication_that_was_opened_only_begins_anew() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = await replicated(world)
        again = await replicated(world, client.events[0].id)
        assert again.told == ["reset", "insert a", "live"]


@in_loop
async def test_a_client_that_was_told_to_reset_and_nothing_else_is_told_again() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = await replicated(world)
        again = await replicated(world, client.events[1].id)
        assert again.told == ["reset", "insert a", "live"]


@in_loop
async def test_a_replication_whose_time_is_forgotten_begins_anew() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = await replicated(world)
        world.log.bind(T + 1)
        world.objects.since = T + 1
        again = await replicated(world, client.events[2].id)
        assert again.headers["x-oplog-mode"] == "reset"


@in_loop
async def test_a_time_that_never_was_is_not_read() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = await replicated(world)
        forged = client.events[2].id.replace(str(T), str(T + 5))
        assert (await replicated(world, forged)).headers["x-oplog-mode"] == "reset"


@in_loop
async def test_a_time_is_held_while_its_rows_are_read_and_no_longer() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = world.connect("0")
        client.blocked.clear()
        await client.opened()
        assert world.objects.held == [T]
        client.blocked.set()
        await client.until(lambda: "live" in client.told)
        assert world.objects.held == []


@in_loop
async def test_a_client_that_leaves_gives_its_time_up() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = world.connect("0")
        client.blocked.clear()
        await client.opened()
        client.blocked.set()
        await client.leave()
        assert world.objects.held == []


@in_loop
async def test_a_fallback_holds_the_time_before_what_was_missed() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        world.log.bind(T)
        client = world.connect(str(T // 1000))
        client.blocked.clear()
        await client.opened()
        assert world.objects.held == [T - 10_000_001]
        client.blocked.set()


@in_loop
async def test_rows_before_are_read_only_where_objects_can_leave() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a", parents=["user/2"]))
        world.log.bind(T)
        since = str(T // 1000)
        await replicated(world, since, filter=OperationFilter.of(["video"]))
        assert world.objects.asked_versions == []
        await replicated(world, since, filter=OperationFilter.of(parents=["user/1"]))
        assert world.objects.asked_versions == [[("video", "a")]]


@in_loop
async def test_an_agent_whose_collection_is_down_refuses_replications_and_goes_on_live() -> None:
    async with given_agent() as world:
        live = await world.opened()
        world.objects.error = ReaderExpired("objects", "objects", "agent")
        refused = await world.opened("0")
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        world.topic.send(operation("a"))
        await live.gets("update a")


@in_loop
async def test_a_collection_that_fails_meanwhile_ends_the_stream_without_live() -> None:
    async with given_agent() as world:
        for id_ in "abcdef":
            world.topic.send(operation(id_))
        world.log.bind(T)
        client = world.connect("0")
        client.blocked.clear()
        await client.opened()
        world.objects.error = ReaderExpired("objects", "objects", "agent")
        client.blocked.set()
        await client.until(lambda: client.is_over)
        assert "live" not in client.told


@in_loop
async def test_a_collection_whose_end_nothing_continues_is_refused() -> None:
    async with given_agent(settings=replace(QUICK, ring_events=2)) as world:
        for id_ in "ac":
            world.topic.send(operation(id_))
        world.log.bind(T)
        for id_ in "egikm":
            world.topic.send(operation(id_))
        world.topic.expire(1, 5)
        await world.caught_up()
        refused = await world.opened("0")
        assert refused.status == 503
        assert b"commit log does not have what lies between" in refused.body
        assert world.objects.held == []


@in_loop
async def test_a_partition_that_was_never_bound_is_read_from_its_beginning() -> None:
    topic = MemoryTopic()
    topic.skip(0, 4)
    topic.expire(0, 4)
    async with given_agent(topic) as world:
        client = await replicated(world)
        assert client.told == ["reset", "live"]


@in_loop
async def test_a_replication_is_not_ignored_where_unknown_ids_are() -> None:
    async with given_agent(settings=replace(QUICK, unknown_id=UnknownId.IGNORE)) as world:
        assert (await replicated(world)).told == ["reset", "live"]


@in_loop
async def test_checkpoints_and_heartbeats_come_within_a_replication() -> None:
    settings = replace(QUICK, checkpoint=0.0)
    async with given_agent(settings=settings) as world:
        for id_ in "abcdef":
            world.topic.send(operation(id_))
        world.log.bind(T)
        client = await replicated(world, filter=OperationFilter.of(["none"]))
        checkpoints = [one.id for one in client.events if one.name == "checkpoint"]
        assert len(checkpoints) >= 3
        assert checkpoints[0].startswith("r1.")


@pytest.mark.parametrize("seed", range(12))
@in_loop
async def test_C16_R26_R27_G4_a_client_that_is_cut_off_at_random_ends_with_the_state_of_the_source(
    seed: int,
) -> None:
    chance = random.Random(seed)
    topic = MemoryTopic()
    log = MemoryLog(topic)
    source: dict[str, list[str]] = {}
    t = T

    def change() -> None:
        nonlocal t
        for _ in range(chance.randrange(6)):
            id_ = str(chance.randrange(30))
            if id_ in source and chance.random() < 0.3:
                del source[id_]
                topic.send(operation(id_, DELETE))
            else:
                source[id_] = [f"user/{chance.randrange(3)}"]
                topic.send(operation(id_, UPDATE, parents=source[id_]))
        if chance.random() < 0.5:
            t += 1_000
            log.bind(t)
            log.is_compacted = chance.random() < 0.3
        if chance.random() < 0.3 and log.bindings:
            for partition in (0, 1):
                # Retention never passes what was captured.
                bound = log.bindings[-1][1][partition][1]
                topic.expire(partition, chance.randint(topic.firsts[partition], bound))

    mirror: dict[str, list[str]] = {}
    last_id = "0"

    def ended(client: StreamClient) -> set[str]:
        return {one.data["id"] for one in client.events if one.data.get("type") == "end"}

    def apply(seen: list[Event]) -> None:
        for event in seen:
            if event.name == "reset":
                mirror.clear()
            elif event.name == "delete":
                mirror.pop(event.data["id"], None)
            elif event.data.get("type") == "video":
                mirror[event.data["id"]] = event.data["parents"]

    async with given_agent(topic, log, replace(QUICK, ring_events=4, readers=2)) as world:
        for _ in range(25):
            change()
            client = world.connect(last_id)
            await world.turns(chance.choice([3, 10, 30, 100]))
            change()
            seen = client.events[: chance.randint(1, max(len(client.events), 1))]
            apply(seen)
            last_id = seen[-1].id if seen else last_id
            await client.leave()
        for id_ in "ab":  # one in each partition
            topic.send(operation(f"end{id_}", type_="end"))
        ends: set[str] = set()
        while len(ends) < 2:
            client = await world.opened(last_id)
            before = len(ends)
            await client.until(
                lambda client=client, before=before: client.is_over or before + len(ended(client)) == 2
            )
            apply(client.events)
            ends |= ended(client)
            last_id = await client.leave() or last_id
        assert mirror == source
