"""Streams that follow: what is sent, in which form, and to whom."""

import json
from dataclasses import replace

import pytest
from tests.support.memory_oplog import MemoryTopic
from tests.support.oplog_samples import bad_record, correction, operation, record
from tests.support.stream_clients import QUICK, StreamClient, given_agent, in_loop

from tidemark.kafka.errors import KafkaFailure
from tidemark.operations.filters import OperationFilter
from tidemark.operations.operation import EventName
from tidemark.oplog.agent.streams.service import StreamFigures
from tidemark.outputs.reader_errors import ReaderExpired

pytestmark = pytest.mark.unit


@in_loop
async def test_R11_a_stream_opens_with_its_status_and_headers() -> None:
    async with given_agent() as world:
        client = await world.opened()
        assert (client.status, client.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert client.headers["x-accel-buffering"] == "no"


@in_loop
async def test_C9_R15_an_empty_topic_is_followed() -> None:
    async with given_agent() as world:
        client = await world.opened()
        world.topic.send(operation("a", EventName.INSERT))
        await client.gets("insert a")


@in_loop
async def test_R15_without_an_id_only_what_happens_from_now_on_is_sent() -> None:
    async with given_agent() as world:
        world.topic.send(operation("a"))
        await world.caught_up()
        client = await world.opened()
        world.topic.send(operation("b"))
        await client.gets("update b")


@in_loop
async def test_every_stream_begins_with_an_event_that_has_an_id() -> None:
    async with given_agent() as world:
        client = await world.opened()
        (event,) = client.events
        assert (event.name, event.data) == ("open", {"mode": "live"})
        assert event.id.startswith("o1.")


@in_loop
async def test_the_mode_is_in_a_header_too() -> None:
    async with given_agent() as world:
        assert (await world.opened()).headers["x-oplog-mode"] == "live"


@in_loop
async def test_R17_R18_without_an_id_none_is_echoed() -> None:
    async with given_agent() as world:
        assert "last-event-id" not in (await world.opened()).headers


@in_loop
async def test_R14_C25_the_data_of_an_operation() -> None:
    async with given_agent(settings=replace(QUICK, object_url="http://api/{{id}}")) as world:
        client = await world.opened()
        world.topic.send(operation("a b", parents=["user/1"]))
        await client.gets("update a b")
        assert client.events[-1].data == {
            "timestamp": "2025-11-26T12:00:00.000Z",
            "parents": ["user/1"],
            "type": "video",
            "id": "a b",
            "ref": "http://api/a%20b",
        }


@in_loop
async def test_R19_R20_R21_a_filter_applies_to_live_operations() -> None:
    async with given_agent() as world:
        client = await world.opened(filter=OperationFilter.of(["video"], ["user/1"]))
        world.topic.send(operation("a", parents=["user/2"]))
        world.topic.send(operation("b", type_="audio", parents=["user/1"]))
        world.topic.send(operation("c", parents=["user/1"]))
        world.topic.send(operation("d", EventName.DELETE))
        await client.until(lambda: len(client.told) == 2)
        assert sorted(client.told) == ["delete d", "update c"]


@in_loop
async def test_limits_of_a_token_are_not_widened_by_an_operation_without_parents() -> None:
    async with given_agent() as world:
        client = await world.opened(limits=OperationFilter.of(parents=["user/1"]))
        world.topic.send(operation("d", EventName.DELETE))
        world.topic.send(operation("d", parents=["user/1"]))
        await client.gets("update d")


@in_loop
async def test_lines_of_json_on_request() -> None:
    async with given_agent() as world:
        client = world.connect(ndjson=True)
        await client.until(lambda: client.body.count(b"\n") == 1)
        world.topic.send(operation("a"))
        await client.until(lambda: client.body.count(b"\n") == 2)
        opened, event = map(json.loads, client.body.splitlines())
        assert client.headers["content-type"] == "application/x-ndjson"
        assert (opened["event"], event["event"], event["data"]["id"]) == ("open", "update", "a")


@in_loop
async def test_void_corrections_are_not_sent() -> None:
    async with given_agent() as world:
        client = await world.opened()
        _, offset = world.topic.send(operation("a"))
        world.topic.send(operation("a"), correction(offset))
        world.topic.send(operation("a", EventName.DELETE), correction(offset + 2))
        await client.gets("update a", "delete a")


@in_loop
async def test_what_is_no_operation_is_counted_and_does_not_stop_the_stream() -> None:
    async with given_agent() as world:
        client = await world.opened()
        world.topic.add(bad_record(0, 0))
        world.topic.send(operation("b"))
        await client.gets("update b")
        assert world.streams.figures.bad == 1


@in_loop
async def test_C22_an_idle_stream_gets_heartbeats() -> None:
    async with given_agent(settings=replace(QUICK, heartbeat=0.02)) as world:
        client = await world.opened()
        await client.until(lambda: client.body.count(b":\n\n") >= 2)


@in_loop
async def test_a_filtered_stream_gets_checkpoints_with_its_position() -> None:
    async with given_agent(settings=replace(QUICK, checkpoint=0.02)) as world:
        client = await world.opened(filter=OperationFilter.of(["none"]))
        world.topic.send(operation("a"))
        await client.until(lambda: "checkpoint" in client.told)
        assert client.events[-1].id != client.events[0].id


@in_loop
async def test_a_checkpoint_is_not_repeated() -> None:
    async with given_agent(settings=replace(QUICK, checkpoint=0.02, heartbeat=0.1)) as world:
        client = await world.opened()
        await client.until(lambda: client.body.count(b":\n\n") >= 3)
        assert client.told in ([], ["checkpoint"])


@in_loop
async def test_a_resume_after_a_checkpoint_misses_nothing() -> None:
    async with given_agent(settings=replace(QUICK, checkpoint=0.02)) as world:
        only_b = {"filter": OperationFilter.of(["b"])}
        client = await world.opened(**only_b)
        world.topic.send(operation("a"))
        await client.until(lambda: "checkpoint" in client.told)
        last_id = await client.leave()
        world.topic.send(operation("x", type_="b"))
        again = await world.opened(last_id, **only_b)
        await again.gets("update x")


@in_loop
async def test_the_oldest_streams_end_so_that_clients_reconnect() -> None:
    settings = replace(QUICK, max_age=0.1, heartbeat=0.04)
    async with given_agent(settings=settings, chance=lambda: 0.0) as world:
        client = await world.opened()
        await client.until(lambda: client.is_over)


@in_loop
async def test_a_stream_ends_when_its_token_expires() -> None:
    async with given_agent(settings=replace(QUICK, heartbeat=0.04)) as world:
        client = await world.opened(expires_at=0.0)
        await client.until(lambda: client.is_over)


@in_loop
async def test_streams_end_when_the_agent_stops() -> None:
    async with given_agent() as world:
        client = await world.opened()
        await world.streams.drain()
        assert client.is_over


@in_loop
async def test_an_agent_that_stops_refuses_streams() -> None:
    async with given_agent() as world:
        await world.streams.drain()
        client = await world.opened()
        assert (client.status, client.headers["retry-after"]) == (503, "5")


@in_loop
async def test_C24_G6_a_client_that_falls_out_of_the_ring_is_told_so() -> None:
    async with given_agent(settings=replace(QUICK, ring_events=2)) as world:
        client = await world.opened()
        client.blocked.clear()
        world.topic.send(operation("a"))
        await client.until(lambda: b"update" in client.body)
        for number in range(5):
            world.topic.send(operation(str(number)))
        await world.caught_up()
        client.blocked.set()
        await client.until(lambda: client.is_over)
        assert client.told[-1] == "slow"


@in_loop
async def test_C24_G6_a_slow_client_goes_on_where_it_was() -> None:
    async with given_agent(settings=replace(QUICK, ring_events=2)) as world:
        client = await world.opened()
        client.blocked.clear()
        world.topic.send(operation("a"))
        await client.until(lambda: b"update" in client.body)
        for number in range(4):
            world.topic.send(operation(str(number)))
        await world.caught_up()
        client.blocked.set()
        await client.until(lambda: client.is_over)
        again = await world.opened(await client.leave())
        await again.until(lambda: len(again.told) == 4)
        assert sorted(again.told) == [f"update {number}" for number in range(4)]


@in_loop
async def test_a_client_that_takes_nothing_is_disconnected() -> None:
    async with given_agent(settings=replace(QUICK, stall=0.05)) as world:
        client = await world.opened()
        client.blocked.clear()
        world.topic.send(operation("a"))
        await client.until(lambda: client.aborted)
        assert client.task is not None
        await client.task
        assert (world.streams.figures.clients, world.streams.figures.slow) == (0, 1)


@in_loop
async def test_a_client_that_takes_nothing_disturbs_no_other() -> None:
    async with given_agent() as world:
        stuck, quick = await world.opened(), await world.opened()
        stuck.blocked.clear()
        world.topic.send(operation("a"))
        await stuck.until(lambda: b"update" in stuck.body)
        world.topic.send(operation("c"))
        await quick.gets("update a", "update c")


@in_loop
async def test_C27_R41_clients_that_leave_leave_nothing_behind() -> None:
    async with given_agent() as world:
        for _ in range(100):
            client = await world.opened(filter=OperationFilter.of(["none"]))
            await client.leave()
        assert world.streams.figures == StreamFigures(
            connections=100, events_sent=100, is_live=True, vector=(0, 0)
        )
        assert not world.streams._clients


@in_loop
async def test_H14_sent_events_are_counted_without_heartbeats() -> None:
    async with given_agent(settings=replace(QUICK, heartbeat=0.02)) as world:
        client = await world.opened()
        world.topic.send(operation("a"))
        await client.until(lambda: client.body.count(b":\n\n") >= 2)
        assert world.streams.figures.events_sent == 2


@in_loop
async def test_a_client_that_is_ahead_of_this_agent_gets_nothing_twice() -> None:
    topic = MemoryTopic()
    async with given_agent(topic) as ahead, given_agent(topic) as behind:
        client = await ahead.opened()
        await behind.opened()
        topic.tails[1].is_held = True
        topic.send(operation("a"))
        await client.gets("update a")
        other = await behind.opened(await client.leave())
        topic.tails[1].is_held = False
        topic.send(operation("c"))
        await other.gets("update c")


@in_loop
async def test_R3_a_client_that_alternates_between_two_agents_misses_nothing() -> None:
    topic = MemoryTopic()
    async with given_agent(topic) as one, given_agent(topic) as two:
        last_id, told = (await one.opened()).events[0].id, []
        for number in range(10):
            topic.send(operation(str(number)))
            client: StreamClient = await (one, two)[number % 2].opened(last_id)
            await client.until(lambda client=client: client.told)
            told += client.told
            last_id = await client.leave()
        assert told == [f"update {number}" for number in range(10)]


@in_loop
async def test_a_topic_that_is_created_again_ends_streams_and_resets_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.hub.hub_reader.LOOKED_AT_EVERY", 0.0)
    async with given_agent() as world:
        client = await world.opened()
        world.topic.recreate("another")
        await client.until(lambda: client.is_over)
        again = await world.opened(await client.leave())
        assert again.headers["x-oplog-mode"] == "reset"


@in_loop
async def test_H4_streams_go_on_when_kafka_comes_back() -> None:
    async with given_agent() as world:
        client = await world.opened()
        world.topic.is_down = True
        world.topic.skip(0)
        world.topic.is_down = False
        world.topic.send(operation("a"))
        await client.gets("update a")


@in_loop
async def test_an_agent_without_kafka_refuses_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.service.READY_WITHIN", 0.05)
    topic = MemoryTopic()
    topic.is_down = True
    async with given_agent(topic) as world:
        client = await world.opened()
        assert (client.status, client.headers["retry-after"]) == (503, "5")


@in_loop
async def test_a_topic_with_fewer_partitions_than_were_recorded_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.service.READY_WITHIN", 0.5)
    async with given_agent(settings=replace(QUICK, partitions=3)) as world:
        client = await world.opened()
        assert b"has 2 partitions" in client.body
        assert all(tail.is_closed for tail in world.topic.tails[:-1])


@in_loop
async def test_further_partitions_are_followed_and_clients_go_on_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.hub.hub_reader.LOOKED_AT_EVERY", 0.0)
    async with given_agent() as world:
        world.topic.send(operation("a"))
        await world.caught_up()
        client = await world.opened()
        world.topic.add_partition()
        await client.until(lambda: client.is_over)
        world.topic.add(record(0, operation("new"), 2))
        again = await world.opened(await client.leave())
        await again.gets("update new")
        assert again.headers["x-oplog-mode"] == "exact"


@in_loop
async def test_a_health_check_asks_kafka_and_the_collection() -> None:
    async with given_agent() as world:
        await world.streams.check()
        world.objects.error = ReaderExpired("objects", "objects", "agent")
        with pytest.raises(ReaderExpired):
            await world.streams.check()


@in_loop
async def test_a_health_check_fails_where_kafka_does_not_answer() -> None:
    async with given_agent() as world:
        await world.opened()
        world.topic.is_down = True
        with pytest.raises(KafkaFailure):
            await world.streams.check()
        world.topic.is_down = False


@in_loop
async def test_a_client_that_takes_nothing_does_not_hold_up_the_end_of_the_agent() -> None:
    async with given_agent(settings=replace(QUICK, stall=0.1)) as world:
        client = await world.opened()
        client.blocked.clear()
        world.topic.send(operation("a"))
        await client.until(lambda: b"update" in client.body)
        await world.streams.drain()
        assert client.aborted
