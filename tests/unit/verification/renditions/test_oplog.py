"""Two renditions of a collection of operations: deletes are part of what its readers get."""

import pytest
from tests.support.compared_world import EXPLAINED, RenditionWorld
from tests.support.oplog_world import OPERATIONS, operation_records

pytestmark = pytest.mark.unit


class OplogRenditions(RenditionWorld):
    """A pipeline of operations."""

    format = "oplog"

    def records(self, binding, partition, words, lower):
        return operation_records(binding, partition, words, lower, self.topic_id)


@pytest.fixture
def world(tmp_path, monkeypatch):
    world = OplogRenditions(tmp_path, monkeypatch, **OPERATIONS)
    world.publish_records("x y", "z")
    world.publish_records("x~ y~@0 y~@2", "z~@0 z~@1")
    world.publish_records("w", "z")
    world.deliver(world.started())
    return world


def change(world, number, id_, **fields):
    tables = world.tables[number]
    (row,) = [row for row in tables.rows if row.message_id == id_]
    tables._cells[row.key, row.t, row.message_id] = (row.write_time, False, row._replace(**fields))


def test_a_rendition_that_was_built_from_the_log_is_the_same(world):
    world.build(**OPERATIONS, shards=2)
    report = world.verify()
    assert (report.is_clean, report.looked_at["bindings"]) == (True, 3)


def test_the_time_of_a_delete_is_compared(world):
    world.build(**OPERATIONS)
    (row,) = [row for row in world.tables[2].rows if row.message_id == 3]
    event, _, parents = row.values
    change(world, 2, 3, values=(event, b"\0" * 8, parents))
    report = world.verify(EXPLAINED)
    assert report.changes == {"changed": 1}
    assert report.columns == {"timestamp": 1}


def test_a_delete_that_is_missing_is_a_difference(world):
    world.build(**OPERATIONS)
    tables = world.tables[2]
    (row,) = [row for row in tables.rows if row.message_id == 3]
    del tables._cells[row.key, row.t, row.message_id]
    assert not world.verify().is_clean
