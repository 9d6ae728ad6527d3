"""Writers that a compacted log refuses: known by their declaration, and as the rule itself would say."""

import pytest
from tests.support.log_samples import compact
from tests.support.pipeline_world import PipelineWorld

from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.delivery.compacted_history import HistoryCompacted, needing_every_message, refusal_of
from tidemark.delivery.state.registration import registered_writers
from tidemark.delivery.writer import MISSED_FOR_EVER
from tidemark.log.state.registered_writers import Enrolled, ensure_enrolled
from tidemark.pipeline.model import Pipeline
from tidemark.writers.renditions import build_declared

pytestmark = pytest.mark.unit

PIPELINE = Pipeline.model_validate(
    {
        "name": "orders",
        "source": {"kafka": {"topics": ["orders"]}},
        "log": {"path": "/nowhere"},
        "writers": [
            {"name": "cassandra", "kind": "journal"},
            {"name": "archive", "kind": "files", "path": "/archive"},
            {"name": "copy", "kind": "kafka", "topic": "copy"},
            {"name": "tail", "kind": "files", "path": "/tail", "start": "latest"},
        ],
    },
    context={},
)
KAFKA = KafkaConnection(servers="nowhere:1")
CONNECTIONS = Connections(
    kafka=KAFKA,
    cassandra={"cassandra_default": CassandraConnection(hosts=("nowhere",))},
    kafka_targets={"kafka_default": KAFKA},
)


def given_compacted(house: PipelineWorld) -> None:
    house.publish(orders="ab")
    house.publish(orders="cd")
    compact(house.control, house.log.folder, 2, keep=lambda id_: id_ == 1, policy="journal")


@pytest.mark.parametrize(
    ("name", "is_refused"), [("cassandra", False), ("archive", True), ("copy", True), ("tail", False)]
)
def test_i16_a_compacted_log_refuses_what_needs_every_message(name, is_refused):
    declared = next(one for one in PIPELINE.writers if one.name == name)
    assert (refusal_of("orders", declared, 7) is not None) == is_refused
    assert (name in needing_every_message(PIPELINE.writers)) == is_refused


def test_a_log_that_is_whole_refuses_nothing():
    assert [refusal_of("orders", one, 0) for one in PIPELINE.writers] == [None] * 4


def test_i16_what_declarations_say_is_what_writers_say():
    """The rule is asked of writers; a declaration only repeats it."""
    for declared in PIPELINE.writers:
        writer = build_declared(PIPELINE, CONNECTIONS, declared.name).writer
        says = writer.refuses_compacted({}, is_begun=True)
        assert (says == MISSED_FOR_EVER) == declared.needs_every_message, declared.name


def test_i16_the_reason_is_the_one_that_the_run_gives(house):
    given_compacted(house)
    writer = house.files_writer()
    with pytest.raises(HistoryCompacted) as refused:
        house.deliver(writer)
    assert str(refusal_of("orders", writer.declared, 2)) == str(refused.value)


def waited_for(house: PipelineWorld) -> list[str]:
    found = registered_writers(house.control, house.positions, ["archive", "copy"], ["archive", "copy"])
    return [one.name for one in found]


def test_i16_a_refused_writer_is_not_waited_for(house):
    given_compacted(house)
    assert waited_for(house) == []


def test_a_refused_writer_that_ran_before_is_waited_for(house):
    given_compacted(house)
    house.register(house.files_writer(), position=3)
    assert waited_for(house) == ["archive"]


def test_a_refused_writer_that_is_being_registered_is_waited_for(house):
    given_compacted(house)
    ensure_enrolled(house.control, Enrolled("copy", 0))
    assert waited_for(house) == ["copy"]
