"""A rendition's writer: its own settings and place, and what it always takes from the file."""

from dataclasses import replace
from typing import Any

import pytest

from tidemark.cassandra.bulk.writer import IN_FLIGHT, IN_FLIGHT_BESIDE
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature
from tidemark.outputs.settings import settings_of
from tidemark.pipeline.model import Pipeline
from tidemark.writers.renditions import (
    NoPlace,
    RenditionUnusable,
    build_declared,
    build_rendition,
    declaration_of,
    sibling_place,
)

pytestmark = pytest.mark.unit

JOURNAL = {"name": "tables", "kind": "journal"}
FILES = {"name": "archive", "kind": "files", "path": "/data/archive"}
KAFKA = {"name": "copy", "kind": "kafka", "topic": "copies"}
ACCOUNTS = {
    "name": "accounts",
    "kind": "collection",
    "envelope": "append",
    "columns": {"owner": "text"},
}
CONNECTIONS = Connections(
    kafka=KafkaConnection(servers="kafka:9092"),
    cassandra={"cassandra_default": CassandraConnection(hosts=("cassandra",))},
    kafka_targets={"kafka_default": KafkaConnection(servers="kafka:9092")},
)
PLACES = [
    (JOURNAL, "journal", "journal_r2"),
    (FILES, "/data/archive", "/data/archive.r2"),
    ({**FILES, "path": "/data/archive/"}, "/data/archive/", "/data/archive.r2"),
    (KAFKA, "copies", "copies.r2"),
    (ACCOUNTS, "collections.accounts", "collections.accounts_r2"),
]


def given_pipeline(*writers: dict[str, Any], **more: Any) -> Pipeline:
    declared = {"name": "orders", "source": {"kafka": {"topics": ["orders"]}}, "writers": list(writers)}
    return Pipeline.model_validate({**declared, **more}, context={"TIDEMARK_HOME": "/home"})


def given_rendition(pipeline: Pipeline, number: int = 2, **shape: Any) -> Rendition:
    """A rendition of the first writer, with the settings that the file has now."""
    (declared, *_) = pipeline.writers
    settings = settings_of(declared, shape, declared.unshaping)
    place = declared.place if number == 1 else declared.sibling(declared.place, number)
    signed = Signature("ann", "a reason", 1)
    return Rendition(number, RenditionState.BUILDING, settings, place, 0, signed)


@pytest.mark.parametrize(("writer", "place", "second"), PLACES)
def test_the_places_of_renditions_are_siblings(writer, place, second):
    pipeline = given_pipeline(writer)
    (declared,) = pipeline.writers
    assert (declared.place, sibling_place(pipeline, declared, 2)) == (place, second)


@pytest.mark.parametrize(("writer", "place", "second"), PLACES)
def test_a_declaration_at_another_place_has_that_place(writer, place, second):
    (declared,) = given_pipeline(writer).writers
    assert declared.at_place(second).place == second


def test_a_keyspace_that_is_too_long_for_a_rendition_has_no_place():
    pipeline = given_pipeline({**JOURNAL, "keyspace": "k" * 46})
    with pytest.raises(NoPlace, match="48 characters"):
        sibling_place(pipeline, pipeline.writers[0], 2)


@pytest.mark.parametrize(("writer", "place", "second"), PLACES)
def test_a_rendition_is_built_at_its_place_under_its_consumers_name(writer, place, second):
    pipeline = given_pipeline(writer)
    built = build_rendition(pipeline, CONNECTIONS, writer["name"], given_rendition(pipeline))
    assert (built.number, built.consumer) == (2, f"{writer['name']}.r2")
    assert (built.declared.name, built.declared.place) == (writer["name"], second)


@pytest.mark.parametrize(("writer", "place", "second"), PLACES)
def test_a_writer_that_was_never_registered_is_built_from_the_file(writer, place, second):
    pipeline = given_pipeline(writer)
    built = build_declared(pipeline, CONNECTIONS, writer["name"])
    assert (built.number, built.rendition, built.consumer) == (1, None, writer["name"])
    assert built.declared == pipeline.writers[0]


@pytest.mark.parametrize("writer", [JOURNAL, ACCOUNTS], ids=["journal", "collection"])
def test_a_rendition_that_is_being_built_delays_deliveries_to_the_active_one_less(writer):
    pipeline = given_pipeline(writer)
    rendition = given_rendition(pipeline)
    building, active = (
        build_rendition(pipeline, CONNECTIONS, writer["name"], replace(rendition, state=state)).writer
        for state in (RenditionState.BUILDING, RenditionState.ACTIVE)
    )
    assert (building.in_flight, active.in_flight) == (IN_FLIGHT_BESIDE, IN_FLIGHT)


def test_a_rendition_keeps_its_settings_when_the_file_changes():
    rendition = given_rendition(given_pipeline({**JOURNAL, "segment_size": 500}))
    now = given_pipeline({**JOURNAL, "segment_size": 900, "consistency": "ONE"})
    built = build_rendition(now, CONNECTIONS, "tables", rendition)
    assert (built.declared.segment_size, built.declared.consistency) == (500, "ONE")


def test_a_rendition_keeps_its_time_zone_and_its_source_format():
    then = given_pipeline(JOURNAL, expiry={"timezone": "Europe/Zurich"})
    rendition = given_rendition(then, timezone="Europe/Zurich")
    built = build_rendition(given_pipeline(JOURNAL), CONNECTIONS, "tables", rendition)
    assert built.writer.shape["timezone"] == "Europe/Zurich"


def test_a_place_that_changed_in_the_file_does_not_move_a_rendition():
    rendition = given_rendition(given_pipeline(FILES), number=1)
    now = given_pipeline({**FILES, "path": "/data/elsewhere"})
    assert build_rendition(now, CONNECTIONS, "archive", rendition).declared.place == "/data/archive"


def test_settings_that_cannot_be_used_any_more_are_refused_with_the_reason():
    pipeline = given_pipeline(FILES)
    rendition = given_rendition(pipeline)
    function = [{"function": {"path": "gone.rules.apply"}}]
    settings = {**rendition.settings, "writer": {**rendition.settings["writer"], "transforms": function}}
    with pytest.raises(RenditionUnusable, match=r"orders/archive: .* rendition 2 .*gone\.rules\.apply"):
        declaration_of("orders", replace(rendition, settings=settings), pipeline.writers[0])


def test_a_kind_whose_connection_the_file_does_not_name_any_more_is_refused():
    rendition = given_rendition(given_pipeline({**KAFKA, "name": "archive"}))
    connections = CONNECTIONS.model_copy(update={"kafka_targets": {}})
    with pytest.raises(RenditionUnusable, match="needs the connection 'kafka_default'"):
        build_rendition(given_pipeline(FILES), connections, "archive", rendition)
