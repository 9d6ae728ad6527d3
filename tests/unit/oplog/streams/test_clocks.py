"""Clocks of producers, of Kafka and of the pipeline differ: no stream depends on them."""

import pytest
from tests.support.oplog_samples import NOON, operation
from tests.support.stream_clients import given_agent, in_loop

pytestmark = pytest.mark.unit

YEAR = 365 * 24 * 3_600_000
"""In ms."""


@pytest.mark.parametrize("bound_at", [NOON - YEAR, NOON, NOON + YEAR])
@in_loop
async def test_G3_a_replication_is_continued_by_offsets_whatever_the_clocks_say(bound_at: int) -> None:
    async with given_agent() as world:
        for id_, at in (("past", NOON - 2 * YEAR), ("now", NOON), ("future", NOON + 2 * YEAR)):
            world.topic.send(operation(id_, at=at))
        world.log.bind(bound_at * 1_000)
        for id_, at in (("older", NOON - 3 * YEAR), ("newer", NOON + 3 * YEAR)):
            world.topic.send(operation(id_, at=at))
        client = world.connect("0")
        await client.until(lambda: len(client.told) == 7)
    assert client.told[0] == "reset"
    assert sorted(client.told[1:4]) == ["insert future", "insert now", "insert past"]
    assert (client.told[4], sorted(client.told[5:])) == ("live", ["update newer", "update older"])
