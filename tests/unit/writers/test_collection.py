"""A collection writer: which rows there are after a delivery, and what stops it."""

import pickle

import pytest
from tests.support.memory_collection import CollectionWorld, collection_writer, given_declared

from tidemark.connections import CassandraConnection
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import TargetReplaced
from tidemark.writers.collection.errors import TablesNotEmpty
from tidemark.writers.collection.writer import CollectionWriter

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path):
    return CollectionWorld(tmp_path)


def test_every_message_has_a_row_and_the_newest_one_is_the_state(world):
    first = world.publish_records("a=1 b=2 a=3")
    second = world.publish_records("b -")
    done = world.deliver(world.started())
    assert (done.position, done.total.written) == (second.end, 4)
    assert dict(done.total.details) == {"rows": 3, "deletes": 1}
    assert world.collection.ids == [0, 1, 2, 3]
    assert world.collection.state(first.t) == {"a": 3, "b": 2}
    assert world.collection.state(second.t) == {"a": 3}


def test_messages_of_other_namespaces_and_dropped_ones_are_counted(tmp_path):
    skip = {"skip": {"field": "balance", "operator": "<", "match": 2}}
    world = CollectionWorld(tmp_path, transforms=[skip])
    world.publish_records("a=1 b=2 c=3")
    total = world.deliver(world.started()).total
    assert (total.written, total.filtered, total.ignored) == (1, 0, 2)
    world = CollectionWorld(tmp_path / "other", namespaces="refunds")
    world.publish_records("a=1 b=2")
    total = world.deliver(world.started()).total
    assert (total.written, total.filtered, total.ignored) == (0, 2, 0)


def test_delivering_again_changes_nothing(world):
    world.publish_records("a=1 b=2", "c=3 d=4")
    world.deliver(world.started())
    rows, digests = world.collection.rows, world.digests
    done = world.deliver_again(world.started())
    assert done.failure is None
    assert (world.collection.rows, world.digests) == (rows, digests)


@pytest.mark.parametrize(
    ("words", "id_", "problem"),
    [
        ("a=1 =2 b=3", 1, "key"),
        ("a=1 b=x c=3", 1, "`balance`"),
        ("a=1 b=2 c?", 2, "cannot be read"),
    ],
    ids=["no key", "a value that does not fit", "no JSON"],
)
def test_a_message_without_a_row_stops_the_writer_and_what_is_below_is_there(world, words, id_, problem):
    world.publish_records(words)
    world.deliver(world.started())
    gate = world.gate(world.started())
    assert gate is not None
    assert (gate.cause, gate.first_id, gate.through) == (Cause.MESSAGE, id_, 2)
    assert problem in gate.reason
    assert world.position(world.started()) == id_ - 1
    assert world.collection.ids == list(range(id_))
    assert world.digests == {}


def test_an_unknown_operation_is_a_bad_message(tmp_path):
    world = CollectionWorld(tmp_path, envelope="debezium", key_format="raw")
    world.publish_records("a:c b:z")
    world.deliver(world.started())
    gate = world.gate(world.started())
    assert gate is not None
    assert (gate.cause, gate.first_id) == (Cause.MESSAGE, 1)
    assert '`op` is "z"' in gate.reason
    assert world.collection.ids == [0]


def test_an_acknowledged_message_has_no_row_and_the_rest_goes_on(world):
    binding = world.publish_records("a=1 b=x c=3")
    world.deliver(world.started())
    world.resume(world.started())
    world.acknowledge(world.started(), 1, untried=False)
    world.resume(world.started())
    assert world.gate(world.started()) is None
    world.deliver(world.started())
    assert world.position(world.started()) == binding.end
    assert world.collection.ids == [0, 2]
    assert world.digests[binding.t].total.count == 2


def test_what_an_attempt_wrote_of_an_acknowledged_message_is_removed(world):
    world.publish_records("a=1 b=2 c=3")

    def fails(done):
        if done == 2:
            raise ConnectionError("no answer")

    world.deliver(world.started(fails))
    assert world.collection.ids == [0, 1]
    world.acknowledge(world.started(), 0, 1)
    world.deliver(world.started())
    assert world.collection.ids == [2]


def test_a_message_of_a_finished_binding_is_not_acknowledged_after_a_rewind(world):
    world.publish_records("a=1 b=2")
    world.deliver(world.started())
    world.rewind("accounts", -1)
    with pytest.raises(NotPossible, match="readers may have read it"):
        world.acknowledge(world.started(), 0)
    assert world.collection.ids == [0, 1]


def test_an_acknowledged_message_is_not_written_after_all(world):
    message = {"t": 1_000, "id": 0}
    refusal = world.started().refuses_redelivery(message, None)
    assert refusal is not None
    assert "never changes" in refusal


def test_a_rewind_writes_the_same_rows_again(world):
    world.publish_records("a=1 b=2")
    world.publish_records("a")
    world.deliver(world.started())
    rows, digests = world.collection.rows, world.digests
    world.rewind("accounts", -1)
    world.deliver(world.started())
    assert (world.collection.rows, world.digests) == (rows, digests)
    assert world.position(world.started()) == 2


def test_with_append_every_message_is_a_row_of_its_own_and_no_key_is_looked_up(tmp_path):
    world = CollectionWorld(tmp_path, envelope="append", key={"message": "bigint"})
    world.publish_records("a=1 a=2 =3", "a=4")
    writer = world.started()
    world.deliver(writer)
    assert world.collection.ids == [0, 1, 2, 3]
    assert writer.memory.looked_up == []


def test_a_table_that_was_created_again_stops_the_writer(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    world.collection.drop()
    world.collection.create()
    world.publish_records("a=2")
    world.deliver(world.started())
    gate = world.gate(world.started())
    assert gate is not None
    assert gate.cause is Cause.REPLACED
    assert world.collection.ids == []


def test_a_table_that_is_gone_is_not_made_again(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    world.collection.drop()
    world.publish_records("a=2")
    world.deliver(world.started())
    gate = world.gate(world.started())
    assert gate is not None
    assert (gate.cause, world.collection.id) == (Cause.TARGET, None)
    assert "collections.accounts" in gate.reason


def test_after_a_rewind_to_the_beginning_a_dropped_table_is_filled_again(world):
    world.publish_records("a=1 b=2")
    world.deliver(world.started())
    rows = world.collection.rows
    world.collection.drop()
    world.operator.rewind("accounts", -1, world.started()).execute(world.deed("rewind"))
    world.deliver(world.started())
    assert world.gate(world.started()) is None
    assert world.collection.rows == rows


def test_a_table_that_is_created_again_while_a_part_is_written_is_noticed(world):
    world.publish_records("a=1")
    writer = world.started()
    world.deliver(writer)
    bound = writer.bound_to(writer.identify())
    world.collection.drop()
    world.collection.create()
    with pytest.raises(TargetReplaced, match="created again while it was written to"):
        bound.settle(None, 0, None)


def test_tables_with_rows_are_refused_for_a_new_writer(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    with pytest.raises(TablesNotEmpty, match=r"collections\.accounts has rows already"):
        collection_writer(world.collection).create_target()


def test_every_setting_that_shapes_the_rows_is_in_the_shape():
    shape = collection_writer(None).shape
    assert shape == {
        "kind": "collection",
        "keyspace": "collections",
        "table": "accounts",
        "envelope": "upsert",
        "key": [["id", "text"]],
        "key_format": None,
        "columns": [["owner", "text"], ["balance", "int"]],
        "transforms": [],
        "shards": 4,
        "namespaces": ".*",
    }


def test_a_table_named_like_the_writer_is_the_same_shape():
    assert collection_writer(None).shape == collection_writer(None, table="accounts").shape


def test_the_writer_can_be_sent_to_tasks():
    writer = CollectionWriter(
        "orders", given_declared(), CassandraConnection(hosts=("127.0.0.1",)), tables="t"
    )
    assert writer.rules.admitted.search("accounts")
    sent = pickle.loads(pickle.dumps(writer))
    assert sent == writer
    assert sent.rules == writer.rules


def test_the_lease_is_checked_before_rows_are_written(world):
    world.publish_records("a=1 b=2 c=3")

    def takes_over(done):
        if done == 1:
            world.clock.now += 10**12

    with pytest.raises(LeaseLost):
        world.deliver(world.started(takes_over))
    assert world.collection.ids == [0, 1]
