"""What a pipeline declares: defaults, every value that is taken, and that it never changes."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from tidemark.pipeline.checks import CQL_RESERVED, overlap
from tidemark.pipeline.loader import load_pipeline
from tidemark.pipeline.model import (
    Consistency,
    Expiry,
    Isolation,
    JournalDeclaration,
    OnFailure,
    Pipeline,
    ReplicationStrategy,
    SourceStart,
    StoppedWriters,
    TableNames,
    WriterStart,
)
from tidemark.settings import Settings
from tidemark.writers.files.kind import FileFormat, FilesDeclaration
from tidemark.writers.kafka.kind import KafkaDeclaration

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
VARIABLES = {"TIDEMARK_HOME": "/home/tidemark"}


def given_pipeline(**keys):
    """The shortest pipeline there is, with some keys different."""
    shortest = {
        "name": "orders",
        "source": {"kafka": {"topics": ["orders"]}},
        "writers": [{"name": "cassandra", "kind": "journal"}],
    }
    return Pipeline.model_validate(shortest | keys, context=VARIABLES)


def given_writer(**keys):
    return given_pipeline(writers=[{"name": "w"} | keys]).writers[0]


def test_only_what_is_marked_required_is_required():
    pipeline = given_pipeline()
    assert pipeline.name == "orders"
    assert pipeline.source.kafka.topics == ("orders",)
    assert pipeline.source.kafka.topic_prefixes == ()
    assert pipeline.source.kafka.format == "kafka-journal"
    assert pipeline.source.kafka.start is SourceStart.EARLIEST
    assert pipeline.source.kafka.connection == "kafka_default"
    assert pipeline.source.kafka.isolation is Isolation.READ_COMMITTED
    assert pipeline.schedule == "*/5 * * * *"
    assert pipeline.limits.max_records_per_run == 1_000_000
    assert pipeline.log.path == "/home/tidemark/log/orders"
    assert pipeline.log.segment_bytes == 1_000_000_000
    assert pipeline.log.compaction.policy == "journal"
    assert pipeline.log.compaction.min_lag == timedelta(hours=1)
    assert pipeline.on_failure is OnFailure.STOP_WRITER
    assert pipeline.stopped_writers is StoppedWriters.FAIL
    assert pipeline.dead_letters is None
    assert pipeline.expiry is None
    assert pipeline.expectations == "default"
    assert pipeline.spark.connection == "spark_default"


def test_a_journal_has_the_names_and_sizes_of_kafka_journal_by_default():
    writer = given_writer(kind="journal")
    assert isinstance(writer, JournalDeclaration)
    assert writer.kind == "journal"
    assert writer.keyspace == "journal"
    assert writer.tables == TableNames()
    assert dict(writer.tables) == {
        table: table for table in ("journal", "metajournal", "pointer2", "setting", "locks")
    }
    assert writer.segment_size == 10_000
    assert writer.replication is None, "as many copies as the cluster can bear"
    assert writer.consistency is Consistency.LOCAL_QUORUM
    assert writer.namespaces == ".*"
    assert writer.connection == "cassandra_default"
    assert writer.start is WriterStart.EARLIEST


def test_a_files_writer_needs_only_a_path():
    writer = given_writer(kind="files", path="/data/orders")
    assert isinstance(writer, FilesDeclaration)
    assert writer.kind == "files"
    assert writer.path == "/data/orders"
    assert writer.format is FileFormat.PARQUET
    assert writer.transforms == ()
    assert writer.namespaces == ".*"
    assert writer.start is WriterStart.EARLIEST


def test_a_kafka_writer_needs_only_a_topic():
    writer = given_writer(kind="kafka", topic="orders-copy")
    assert isinstance(writer, KafkaDeclaration)
    assert writer.kind == "kafka"
    assert writer.topic == "orders-copy"
    assert writer.connection == "kafka_default"
    assert writer.transforms == ()
    assert writer.namespaces == ".*"
    assert writer.start is WriterStart.EARLIEST


def test_a_kafka_writer_may_republish_a_topic_s_name_to_another_cluster():
    writer = given_writer(kind="kafka", topic="orders", connection="kafka_far")
    assert (writer.topic, writer.connection) == ("orders", "kafka_far")


def test_the_sample_is_the_one_of_the_design():
    pipeline = load_pipeline(
        ROOT / "include/pipelines/orders.yaml", Settings.read({"TIDEMARK_HOME": "/home/tidemark"})
    )
    assert pipeline == given_pipeline(
        writers=[
            {"name": "cassandra", "kind": "journal"},
            {"name": "archive", "kind": "files", "path": "/home/tidemark/archive/orders"},
        ],
        expiry={},
    )
    assert pipeline.expiry == Expiry(schedule="@daily", timezone="UTC")


@pytest.mark.parametrize(
    ("message_format", "policy"), [("kafka-journal", "journal"), ("json", "latest"), ("raw", "latest")]
)
def test_the_default_compaction_policy_follows_the_format(message_format, policy):
    pipeline = given_pipeline(
        source={"kafka": {"topics": ["orders"], "format": message_format}},
        writers=[{"name": "archive", "kind": "files", "path": "/data"}],
    )
    assert pipeline.log.compaction.policy == policy


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        ({}, timedelta(days=7)),
        ({"keep_bindings": "2h"}, timedelta(hours=2)),
        ({"compaction": {"min_lag": "30d"}}, timedelta(days=30)),
        ({"keep_bindings": "30d", "compaction": {"min_lag": "30d"}}, timedelta(days=30)),
    ],
    ids=["a week", "as the file says", "at least min_lag", "as long as min_lag"],
)
def test_bindings_are_kept_for_a_week_or_as_long_as_the_file_says(log, kept):
    assert given_pipeline(log=log).log.bindings_kept == kept


def test_bindings_that_compaction_needs_must_be_kept():
    with pytest.raises(ValueError, match=r"min_lag is `3600s`.*Keep them for `3600s` or longer"):
        given_pipeline(log={"keep_bindings": "30m"})


def test_the_other_keys_of_the_log_do_not_lose_its_default_path():
    pipeline = given_pipeline(log={"segment_bytes": "512MiB", "compaction": {"min_lag": "7d"}})
    assert pipeline.log.path == "/home/tidemark/log/orders"
    assert pipeline.log.segment_bytes == 512 * 1024 * 1024
    assert pipeline.log.compaction.policy == "journal"
    assert pipeline.log.compaction.min_lag == timedelta(days=7)


@pytest.mark.parametrize(
    "schedule",
    ["*/5 * * * *", "0 0 29 2 *", "0 3 * * MON-FRI", "15 2 1 MAR *", "@hourly", "@quarterly", None],
)
def test_a_schedule_is_cron_a_preset_or_nothing(schedule):
    assert given_pipeline(schedule=schedule).schedule == schedule
    assert given_pipeline(expiry={"schedule": schedule}).expiry == Expiry(schedule=schedule)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_files_writer_starts_at_either_end(start):
    assert given_writer(kind="files", path="/data", start=start).start == start


def test_a_journal_may_start_with_topics_that_were_made_again():
    assert given_writer(kind="journal", start="recreated").start is WriterStart.RECREATED


@pytest.mark.parametrize("keys", [{"kind": "files", "path": "/data"}, {"kind": "kafka", "topic": "out"}])
def test_no_other_writer_starts_there(keys):
    with pytest.raises(ValidationError, match="can be `recreated` for a journal only"):
        given_writer(**keys, start="recreated")


@pytest.mark.parametrize(
    "expression", [".*", "^orders$", r"\borders\.(eu|us)\b", "(?i)orders", "[a-z]+?", "(a|b){2,3}"]
)
def test_an_expression_of_plain_parts_is_taken(expression):
    assert given_writer(kind="journal", namespaces=expression).namespaces == expression


def test_replication_by_data_centre():
    replication = given_writer(
        kind="journal", replication={"class": "NetworkTopologyStrategy", "eu-west": 3, "us_east": 2}
    ).replication
    assert replication.strategy is ReplicationStrategy.NETWORK_TOPOLOGY
    assert replication.factors == {"eu-west": 3, "us_east": 2}


@pytest.mark.parametrize(
    "path",
    ["/data/orders", "s3a://bucket/orders", "hdfs://name:8020/orders", "file:/data", "abfss://c@a.example/x"],
)
def test_a_path_is_absolute_or_a_uri(path):
    assert given_writer(kind="files", path=path).path == path


def test_start_pointers_goes_with_one_journal_and_any_other_writers():
    pipeline = given_pipeline(
        source={"kafka": {"topics": ["orders"], "start": "pointers"}},
        writers=[
            {"name": "cassandra", "kind": "journal"},
            {"name": "archive", "kind": "files", "path": "/data"},
        ],
    )
    assert pipeline.source.kafka.start is SourceStart.POINTERS


def test_two_journals_may_have_the_same_keyspace_in_two_clusters():
    pipeline = given_pipeline(
        writers=[
            {"name": "eu", "kind": "journal", "connection": "cassandra_eu"},
            {"name": "us", "kind": "journal", "connection": "cassandra_us"},
        ]
    )
    assert [writer.connection for _, writer in pipeline.journals] == ["cassandra_eu", "cassandra_us"]


def test_a_pipeline_never_changes():
    pipeline = given_pipeline()
    with pytest.raises(ValidationError, match="frozen"):
        pipeline.name = "carts"
    assert hash(pipeline) == hash(given_pipeline())


def test_a_pipeline_survives_json():
    pipeline = given_pipeline(log={"compaction": {"min_lag": "30m"}}, expiry={"timezone": "Europe/Zurich"})
    assert Pipeline.model_validate_json(pipeline.model_dump_json(exclude_defaults=True)) == pipeline


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("/data/orders", "/data/orders", True),
        ("/data/orders", "/data/orders/", True),
        ("/data/orders", "/data/./x/../orders", True),
        ("/data/orders", "file:///data/orders", True),
        ("/data/orders", "file:/data/orders", True),
        ("/data", "/data/orders", True),
        ("/data/orders", "/data/orders2", False),
        ("s3a://bucket/x", "s3a://bucket/x/y", True),
        ("s3a://bucket", "S3A://bucket/x", True),
        ("s3a://bucket/x", "s3a://other/x", False),
        ("s3a://data/x", "/data/x", False),
    ],
)
def test_folders_are_compared_by_their_parts(one, other, shared):
    assert overlap(one, other) is shared
    assert overlap(other, one) is shared


def test_the_reserved_words_are_reserved_for_the_driver_too():
    from cassandra.metadata import cql_keywords_reserved

    assert set(CQL_RESERVED.split()) <= cql_keywords_reserved
