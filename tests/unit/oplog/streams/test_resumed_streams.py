"""Streams that go on at an id: exactly, from Kafka or the commit log, or from the collection."""

from dataclasses import replace

import pytest
from tests.support.memory_oplog import MemoryLog, MemoryTopic
from tests.support.oplog_samples import correction, operation
from tests.support.stream_clients import QUICK, StreamWorld, given_agent, in_loop

from tidemark.operations.corrections import FARTHEST
from tidemark.operations.filters import OperationFilter
from tidemark.operations.operation import EventName
from tidemark.oplog.agent.streams.settings import UnknownId

pytestmark = pytest.mark.unit

NO_RING = replace(QUICK, ring_events=2)
IGNORE = replace(QUICK, unknown_id=UnknownId.IGNORE)
ORIGINAL = "54e07b75f2fcd8c74bb7bad3"


async def id_now(world: StreamWorld, **options: object) -> str:
    """An id of a client that has everything so far."""
    await world.caught_up()
    client = await world.opened(**options)
    return await client.leave()


def send_many(topic: MemoryTopic, count: int = 8, prefix: str = "x") -> list[str]:
    """Operations, more than the smallest ring keeps; what a client is told of them."""
    for number in range(count):
        topic.send(operation(f"{prefix}{number}"))
    return [f"update {prefix}{number}" for number in range(count)]


@in_loop
async def test_R16_R17_a_known_id_is_continued_and_echoed() -> None:
    async with given_agent() as world:
        last_id = await id_now(world)
        told = send_many(world.topic)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 8)
        assert (sorted(client.told), client.headers["last-event-id"]) == (told, last_id)


@in_loop
async def test_a_resume_within_the_ring_needs_no_reader() -> None:
    async with given_agent() as world:
        last_id = await id_now(world)
        send_many(world.topic)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 8)
        assert world.topic.read == []


@in_loop
async def test_R16_a_resume_before_the_ring_is_read_from_kafka() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        told = send_many(world.topic)
        world.topic.skip(0, 3)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 8)
        assert sorted(client.told) == told
        assert client.headers["x-oplog-mode"] == "exact"


@in_loop
async def test_R26_every_event_is_a_place_to_go_on_at() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        told = send_many(world.topic)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 8)
        for number, event in enumerate(client.events[1:], 1):
            again = await world.opened(event.id)
            await again.until(lambda again=again, number=number: len(again.told) == 8 - number)
            assert sorted(client.told[:number] + again.told) == told


@in_loop
async def test_R21_a_filter_applies_to_what_was_missed() -> None:
    only_a = {"filter": OperationFilter.of(["a"])}
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world, **only_a)
        world.topic.send(operation("1", type_="a"))
        send_many(world.topic)
        await world.caught_up()
        client = await world.opened(last_id, **only_a)
        await client.gets("update 1")


@in_loop
async def test_void_corrections_are_left_out_of_what_was_missed() -> None:
    async with given_agent(settings=NO_RING) as world:
        _, offset = world.topic.send(operation("a"))
        last_id = await id_now(world)
        world.topic.send(operation("a", EventName.DELETE), correction(offset))
        send_many(world.topic, 4)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 4)
        assert "delete a" not in client.told


@in_loop
async def test_retention_that_passes_a_client_is_made_good_from_the_commit_log() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        told = send_many(world.topic)
        world.log.bind(1_000)
        for partition in (0, 1):
            world.topic.expire(partition, 3)
        told += send_many(world.topic, 4, "y")
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 12)
        assert sorted(client.told) == told
        assert client.headers["x-oplog-mode"] == "exact"


@in_loop
async def test_an_accepted_loss_makes_a_resume_inexact() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        send_many(world.topic)
        world.log.bind(1_000)
        world.log.lost = [(0, 1)]
        world.topic.expire(0, 3)
        await world.caught_up()
        client = await world.opened(last_id)
        assert client.headers["x-oplog-mode"] == "fallback"
        assert "last-event-id" not in client.headers


@in_loop
async def test_C14_H5_a_fallback_sends_what_has_changed_with_deletes_and_then_live() -> None:
    async with given_agent(settings=NO_RING) as world:
        for id_ in "abc":
            world.topic.send(operation(id_))
        world.log.bind(1_000)
        last_id = await id_now(world)
        world.topic.send(operation("a", EventName.UPDATE))
        world.topic.send(operation("a", EventName.UPDATE))
        world.topic.send(operation("c", EventName.DELETE))
        world.log.bind(2_000)
        world.log.is_compacted = True
        world.topic.expire(1, 5)
        world.topic.expire(0, 1)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: "live" in client.told)
        assert (sorted(client.told[:-1]), client.told[-1]) == (["delete c", "insert a"], "live")


@in_loop
async def test_a_fallback_covers_only_the_partitions_that_are_gone() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        in_zero = [one for one in "abcdef" if world.topic.partition_of(operation(one)) == 0]
        in_one = [one for one in "abcdef" if one not in in_zero]
        for id_ in "abcdef":
            world.topic.send(operation(id_))
        world.log.bind(1_000)
        world.log.is_compacted = True
        world.topic.expire(0, 3)
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 7)
        assert sorted(client.told[:3]) == [f"insert {one}" for one in in_zero]
        assert client.told[3:] == ["live", *(f"update {one}" for one in in_one)]


@in_loop
async def test_a_fallback_continues_exactly_after_its_rows() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        send_many(world.topic, 4)
        world.log.bind(1_000)
        world.log.is_compacted = True
        for partition in (0, 1):
            world.topic.expire(partition, 1)
        later = send_many(world.topic, 4, "y")
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 9)
        assert sorted(client.told[5:]) == later


@in_loop
async def test_an_object_that_has_left_the_filter_is_deleted_by_a_fallback() -> None:
    mine = {"filter": OperationFilter.of(parents=["user/1"])}
    async with given_agent(settings=NO_RING) as world:
        world.topic.send(operation("a", parents=["user/1"]))
        world.topic.send(operation("c", parents=["user/2"]))
        world.log.bind(1_000)
        last_id = await id_now(world, **mine)
        world.topic.send(operation("a", parents=["user/2"]))
        world.topic.send(operation("c", parents=["user/3"]))
        world.log.bind(2_000)
        world.log.is_compacted = True
        world.topic.expire(1, 4)
        await world.caught_up()
        client = await world.opened(last_id, **mine)
        await client.gets("delete a", "live")


@in_loop
async def test_a_vector_within_a_binding_is_compared_with_the_row_before_it() -> None:
    mine = {"filter": OperationFilter.of(parents=["user/1"])}
    async with given_agent(settings=NO_RING) as world:
        world.topic.send(operation("a", parents=["user/1"]))
        last_id = await id_now(world, **mine)
        world.topic.send(operation("a", parents=["user/2"]))
        world.log.bind(1_000)
        world.log.is_compacted = True
        world.topic.expire(1, 2)
        await world.caught_up()
        client = await world.opened(last_id, **mine)
        await client.gets("delete a", "live")


@in_loop
async def test_a_vector_older_than_the_collection_remembers_resets() -> None:
    async with given_agent(settings=NO_RING) as world:
        last_id = await id_now(world)
        send_many(world.topic, 4)
        world.log.bind(1_000)
        send_many(world.topic, 2, "y")
        world.log.bind(2_000)
        world.log.is_compacted = True
        for partition in (0, 1):
            world.topic.expire(partition, 2)
        world.objects.since = 1_500
        await world.caught_up()
        client = await world.opened(last_id)
        await client.until(lambda: "live" in client.told)
        assert (client.headers["x-oplog-mode"], client.told[0], len(client.told)) == ("reset", "reset", 8)
        assert "last-event-id" not in client.headers


@in_loop
async def test_an_id_of_another_filter_resets() -> None:
    async with given_agent() as world:
        last_id = await id_now(world)
        world.log.bind(1_000)
        client = await world.opened(last_id, filter=OperationFilter.of(["video"]))
        await client.gets("reset", "live")


@in_loop
async def test_an_id_beyond_the_end_of_the_topic_resets() -> None:
    async with given_agent() as world:
        send_many(world.topic)
        last_id = await id_now(world)
        world.log.bind(1_000)
    async with given_agent() as other:
        client = await other.opened(last_id)
        assert client.headers["x-oplog-mode"] == "reset"


@in_loop
async def test_R18_an_id_that_cannot_be_continued_is_ignored_where_that_is_declared() -> None:
    async with given_agent(settings=IGNORE) as world:
        client = await world.opened(ORIGINAL)
        world.topic.send(operation("a"))
        await client.gets("update a")
        assert (client.status, "last-event-id" in client.headers) == (200, False)


@in_loop
async def test_R18_an_expired_id_is_ignored_where_that_is_declared() -> None:
    async with given_agent(settings=replace(IGNORE, ring_events=2)) as world:
        last_id = await id_now(world)
        send_many(world.topic)
        for partition in (0, 1):
            world.topic.expire(partition, 3)
        await world.caught_up()
        client = await world.opened(last_id)
        assert client.headers["x-oplog-mode"] == "live"


@in_loop
async def test_T13_H5_an_id_of_the_original_falls_back_to_its_seconds() -> None:
    async with given_agent() as world:
        send_many(world.topic, 2, "old")
        world.log.bind(1_423_997_803_000_000 - 1)
        send_many(world.topic, 2, "new")
        world.log.bind(1_423_997_803_000_000)
        client = await world.opened(ORIGINAL)
        await client.until(lambda: "live" in client.told)
        assert sorted(client.told[:-1]) == ["insert new0", "insert new1"]
        assert client.headers["x-oplog-mode"] == "fallback"
        assert "last-event-id" not in client.headers


@pytest.mark.parametrize("last_event_id", ["", "abc", "o1.x.y", "-5", "o1.abcdefghijkl.\r\nx: y"])
@in_loop
async def test_C20_a_malformed_id_is_refused(last_event_id: str) -> None:
    async with given_agent() as world:
        client = await world.opened(last_event_id)
        assert (client.status, world.streams.figures.clients) == (400, 0)


@in_loop
async def test_the_parameter_since_counts_only_without_an_id() -> None:
    async with given_agent() as world:
        last_id = await id_now(world)
        client = await world.opened(last_id, since="1")
        assert client.headers["x-oplog-mode"] == "exact"


@pytest.mark.parametrize("since", ["x", "2026-01-31", "2026-01-31T12:00:00", "12345678901234"])
@in_loop
async def test_a_malformed_since_is_refused(since: str) -> None:
    async with given_agent() as world:
        assert (await world.opened(since=since)).status == 400


@in_loop
async def test_G6_retention_that_passes_a_reader_is_made_good_from_the_log() -> None:
    topic = MemoryTopic()
    log = MemoryLog(topic)
    async with given_agent(topic, log, NO_RING) as world:
        last_id = await id_now(world)
        told = send_many(topic)
        await world.caught_up()
        log.bind(1_000)
        # The agent asks for offsets, and they change before it reads.
        await world.streams.check()
        for partition in (0, 1):
            topic.expire(partition, 2)
        client = await world.opened(last_id)
        await client.until(lambda: len(client.told) == 8)
        assert sorted(client.told) == told


@in_loop
async def test_C24_where_nothing_can_make_it_good_the_client_is_told_and_falls_back() -> None:
    topic = MemoryTopic()
    log = MemoryLog(topic)
    async with given_agent(topic, log, NO_RING) as world:
        last_id = await id_now(world)
        send_many(topic)
        await world.caught_up()
        log.bind(1_000)
        log.is_compacted = True
        await world.streams.check()
        for partition in (0, 1):
            topic.expire(partition, 2)
        client = await world.opened(last_id)
        await client.until(lambda: client.is_over)
        assert client.told == ["slow"]
        again = await world.opened(await client.leave())
        assert again.headers["x-oplog-mode"] == "fallback"


@in_loop
async def test_a_correction_that_cannot_be_judged_any_more_is_left_to_the_collection() -> None:
    async with given_agent(settings=NO_RING) as world:
        topic, log = world.topic, world.log
        a = operation("a")
        partition, looked_at = topic.send(a)
        topic.send(a)
        last_id = await id_now(world)
        topic.send(operation("a", EventName.DELETE), correction(looked_at))
        for _ in range(3):
            topic.send(a)
        log.bind(1_000)
        await world.caught_up()
        log.is_compacted = True
        topic.expire(partition, looked_at + 2)
        client = await world.opened(last_id)
        await client.until(lambda: client.is_over)
        again = await world.opened(await client.leave())
        await again.gets("insert a", "live")


@in_loop
async def test_a_hub_that_cannot_judge_a_correction_begins_anew() -> None:
    topic = MemoryTopic()
    topic.skip(1, FARTHEST)
    topic.expire(1, FARTHEST)
    async with given_agent(topic) as world:
        client = await world.opened()
        topic.send(operation("a"), correction(FARTHEST - 5))
        await client.until(lambda: client.is_over)
        again = await world.opened()
        topic.send(operation("c"))
        await again.gets("update c")


@in_loop
async def test_readers_are_given_back() -> None:
    async with given_agent(settings=replace(NO_RING, readers=1)) as world:
        last_id = await id_now(world)
        send_many(world.topic)
        await world.caught_up()
        for _ in range(5):
            client = await world.opened(last_id)
            await client.until(lambda client=client: len(client.told) == 8)
        await world.until(lambda: world.streams.figures.readers == 0)
        assert world.topic.open_readers == 1


@in_loop
async def test_a_slow_client_does_not_keep_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.catching_up.QUICK", 0.02)
    async with given_agent(settings=replace(NO_RING, readers=1)) as world:
        last_id = await id_now(world)
        told = send_many(world.topic)
        await world.caught_up()
        slow = await world.opened(last_id)
        slow.blocked.clear()
        quick = await world.opened(last_id)
        await quick.until(lambda: len(quick.told) == 8)
        slow.blocked.set()
        await slow.until(lambda: len(slow.told) == 8)
        assert sorted(slow.told) == told


@in_loop
async def test_a_client_that_leaves_while_it_waits_for_a_reader_takes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.catching_up.QUICK", 60.0)
    async with given_agent(settings=replace(NO_RING, readers=1, heartbeat=0.02)) as world:
        last_id = await id_now(world)
        send_many(world.topic)
        await world.caught_up()
        slow = await world.opened(last_id)
        slow.blocked.clear()
        await world.until(lambda: world.streams.figures.readers == 1)
        waiting = await world.opened(last_id)
        await waiting.until(lambda: b":\n\n" in waiting.body)
        await waiting.leave()
        slow.blocked.set()
        last = await world.opened(last_id)
        await last.until(lambda: len(last.told) == 8)
        await world.until(lambda: world.streams.figures.readers == 0)


@in_loop
async def test_a_client_that_takes_nothing_gives_its_reader_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.catching_up.QUICK", 60.0)
    async with given_agent(settings=replace(NO_RING, readers=1, stall=0.05)) as world:
        last_id = await id_now(world)
        send_many(world.topic)
        await world.caught_up()
        stuck = await world.opened(last_id)
        stuck.blocked.clear()
        await stuck.until(lambda: stuck.aborted)
        await world.until(lambda: world.streams.figures.readers == 0)
        assert world.topic.open_readers == 0
