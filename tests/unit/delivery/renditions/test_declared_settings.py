"""The settings that a writer was registered with, and what the file says otherwise, for every kind."""

from typing import Any

import pytest

from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.delivery.renditions.declared import changed_in_file, code_now, first_settings
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature
from tidemark.pipeline.model import Pipeline
from tidemark.writers.renditions import build_declared, build_rendition

pytestmark = pytest.mark.unit

CONNECTIONS = Connections(
    kafka=KafkaConnection(servers="kafka:9092"),
    cassandra={"cassandra_default": CassandraConnection(hosts=("cassandra",))},
    kafka_targets={"kafka_default": KafkaConnection(servers="kafka:9092")},
)
JOURNAL = {"name": "it", "kind": "journal"}
FILES = {"name": "it", "kind": "files", "path": "/data/it"}
KAFKA = {"name": "it", "kind": "kafka", "topic": "copies"}
ROWS = {"name": "it", "kind": "collection", "envelope": "append", "columns": {"owner": "text"}}
KINDS = [JOURNAL, FILES, KAFKA, ROWS]
CHANGES = [
    (JOURNAL, {"keyspace": "other"}, {"keyspace"}),
    (JOURNAL, {"segment_size": 500}, {"segment_size"}),
    (JOURNAL, {"namespaces": "^a"}, {"namespaces"}),
    (FILES, {"path": "/data/other"}, {"path"}),
    (FILES, {"format": "jsonl"}, {"format"}),
    (KAFKA, {"topic": "others"}, {"topic"}),
    (KAFKA, {"transforms": [{"pretty": {}}]}, {"transforms"}),
    (ROWS, {"shards": 4}, {"shards"}),
    (ROWS, {"table": "other"}, {"table"}),
    (ROWS, {"columns": {"owner": "text", "balance": "int"}}, {"columns"}),
]
LOOKED_AFTER = {"soak": "1h", "on_change": "rebuild"}


def given_pipeline(writer: dict[str, Any], **more: Any) -> Pipeline:
    declared = {"name": "orders", "source": {"kafka": {"topics": ["orders"]}}, "writers": [writer]}
    return Pipeline.model_validate({**declared, **more}, context={"TIDEMARK_HOME": "/home"})


def shape_of(pipeline: Pipeline) -> dict[str, Any]:
    """What the control plane has of a registered writer."""
    writer = build_declared(pipeline, CONNECTIONS, "it").writer
    (declared,) = pipeline.writers
    if declared.kind == "kafka":
        keys = {"kind", "topic", "namespaces", "transforms"}
        return {**declared.model_dump(mode="json", include=keys), "partitions": 3}
    return dict(writer.shape)


def given_first(registered: Pipeline, now: Pipeline | None = None) -> Rendition:
    """The first rendition of a writer that was registered by one file; the output is made by another."""
    writer = build_declared(now or registered, CONNECTIONS, "it").writer
    found = first_settings(writer, shape_of(registered))
    signed = Signature("ann", "a reason", 1)
    return Rendition(1, RenditionState.ACTIVE, found.settings, found.place, 0, signed)


@pytest.mark.parametrize("writer", KINDS, ids=lambda one: one["kind"])
def test_a_file_that_did_not_change_differs_in_nothing(writer):
    pipeline = given_pipeline(writer)
    first = given_first(pipeline)
    (declared,) = pipeline.writers
    assert first.place == declared.place
    assert changed_in_file(pipeline, declared, first) == []
    now = given_pipeline({**writer, **LOOKED_AFTER})
    assert changed_in_file(now, now.writers[0], first) == []


@pytest.mark.parametrize(("writer", "keys", "changed"), CHANGES)
def test_a_changed_setting_or_place_is_named(writer, keys, changed):
    first = given_first(given_pipeline(writer))
    now = given_pipeline({**writer, **keys})
    assert {one.key for one in changed_in_file(now, now.writers[0], first)} == changed


@pytest.mark.parametrize(("writer", "keys", "changed"), [one for one in CHANGES if one[0] is not ROWS])
def test_settings_that_changed_with_the_upgrade_are_those_of_the_registration(writer, keys, changed):
    then, now = given_pipeline(writer), given_pipeline({**writer, **keys})
    first = given_first(then, now)
    assert first.place == then.writers[0].place
    built = build_rendition(now, CONNECTIONS, "it", first)
    assert built.declared.place == then.writers[0].place
    if writer is not KAFKA:  # its shape asks the broker
        assert built.writer.shape == shape_of(then)
    assert {one.key for one in changed_in_file(now, now.writers[0], first)} == changed


def test_a_time_zone_is_a_setting_of_a_journal_and_of_no_other():
    zone = {"timezone": "Europe/Zurich"}
    for writer, changed in ((JOURNAL, ["timezone"]), (FILES, [])):
        first, now = given_first(given_pipeline(writer)), given_pipeline(writer, expiry=zone)
        assert [one.key for one in changed_in_file(now, now.writers[0], first)] == changed


def test_another_kind_under_the_same_name_stays_what_it_was():
    first = given_first(given_pipeline(FILES), given_pipeline(JOURNAL))
    assert (first.place, first.settings["writer"]["kind"]) == ("/data/it", "files")
    now = given_pipeline(JOURNAL)
    assert "kind" in {one.key for one in changed_in_file(now, now.writers[0], first)}


def test_a_writer_without_a_declaration_has_its_shape_alone():
    class Plain:
        name = "it"

    assert first_settings(Plain(), {"kind": "own"}).settings == {"shape": {"kind": "own"}}


def test_the_code_of_functions_is_known_by_their_modules():
    transforms = [{"function": {"path": "tests.support.collection_samples.with_time"}}, {"pretty": {}}]
    code = code_now({"writer": {"transforms": transforms}})
    assert "tests.support.collection_samples" in code
    assert code_now({"shape": {}}) == {}
