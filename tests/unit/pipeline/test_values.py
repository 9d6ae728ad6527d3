"""Every value of a pipeline file that is refused: the line it is on and what is said about it.

Each case is the shortest file with one value wrong.
"""

import pytest
from tests.support.pipeline_files import ARCHIVE, FILES, HEAD, JOURNAL, WRITERS, check

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("kafka", "line", "said"),
    [
        ("format: json", 3, "`source.kafka` names no topic. Add `topics` or `topic_prefixes`."),
        ("topics: []", 4, "`source.kafka.topics` is an empty list"),
        ("topic_prefixes: []", 4, "`source.kafka.topic_prefixes` is an empty list"),
        (
            "topics:\n      - a\n      - b\n      - a",
            7,
            "`source.kafka.topics[2]` is `a` for the second time",
        ),
        ("topic_prefixes: [a, a]", 4, "`source.kafka.topic_prefixes[1]` is `a` for the second time"),
        (
            "topics:\n      - orders\n      - or ders",
            6,
            "`source.kafka.topics[1]` is `or ders`, which no topic is called",
        ),
        ("topics: ['']", 4, "which no topic is called"),
        ("topics: ['..']", 4, "which no topic is called"),
        ("topic_prefixes: ['']", 4, "which no topic is called"),
        (f"topics: [{'a' * 250}]", 4, "longer than 249 characters"),
        (
            "topics: [a]\n    format: jsn",
            5,
            "is `jsn`, which is not one of kafka-journal, json, raw, oplog. Did you mean `json`?",
        ),
        ("topics: [a]\n    start: latest", 5, "is `latest`, which is not one of earliest, pointers."),
        ("topics: [a]\n    isolation: committed", 5, "Did you mean `read_committed`?"),
        ("topics: [a]\n    connection: 'kafka://me:hunter2@host'", 5, "is not the id of a connection"),
    ],
)
def test_a_source(tmp_path, kafka, line, said):
    check(tmp_path, f"name: orders\nsource:\n  kafka:\n    {kafka}\n" + FILES, line, said)


@pytest.mark.parametrize(
    "schedule",
    [
        "every day",
        "* * * *",
        "* * * * * *",
        "61 * * * *",
        "*/0 * * * *",
        "0 0 31 2 *",
        "R R * * *",
        "H H * * *",
        "",
        "٣ * * * *",
    ],
)
def test_a_schedule_that_is_not_one(tmp_path, schedule):
    check(
        tmp_path, HEAD + WRITERS + f"schedule: '{schedule}'\n", 5, 'Write five fields, such as "*/5 * * * *"'
    )


@pytest.mark.parametrize(
    ("rest", "line", "said"),
    [
        ("schedule: '@dayly'", 5, "is `@dayly`, which is not known. Did you mean `@daily`?"),
        ("schedule: '@Daily'", 5, "Did you mean `@daily`?"),
        ("schedule: '@once'", 5, "Known: @hourly,"),
        ("expiry:\n  schedule: never", 6, "`expiry.schedule` is `never`, which is not a schedule"),
        ("expiry:\n  timezone: Europe/Zurch", 6, "not a known time zone. Did you mean `Europe/Zurich`?"),
        ("expiry:\n  timezone: utc", 6, "Did you mean `UTC`?"),
        ("expiry:\n  timezone: Europe", 6, "is `Europe`, which is not a known time zone"),
        ("expiry:\n  timezone: ../../etc/passwd", 6, "not a known time zone"),
        ("limits:\n  max_records_per_run: 0", 6, "is `0`. It must be at least 1."),
        ("limits:\n  max_records_per_run: true", 6, "must be a whole number, not `true`"),
        (
            "limits:\n  max_records_per_run: '5'",
            6,
            "must be a whole number, not text. Write digits without quotes.",
        ),
        ("limits:\n  max_records_per_run: 1.5", 6, "must be a whole number, not `1.5`"),
        ("limits:\n  max_records_per_run: -_", 6, "must be a whole number, not text"),
        (
            "log:\n  segment_bytes: 1gb",
            6,
            "`log.segment_bytes` has the unit `gb`, which is not known. Did you mean `1GB`?",
        ),
        (
            "log:\n  compaction:\n    min_lag: 30",
            7,
            "`log.compaction.min_lag` has no unit. Did you mean `30s`?",
        ),
        ("log:\n  compaction:\n    policy: lates", 7, "Did you mean `latest`?"),
        ("on_failure: stop", 5, "is `stop`, which is not one of stop_writer, stop_pipeline."),
        ("on_failure: stop_writers", 5, "Did you mean `stop_writer`?"),
        ("stopped_writers: failed", 5, "is `failed`, which is not one of fail, skip."),
        ("follow:\n  every: 100ms", 6, "`follow.every` is not a duration"),
        ("follow:\n  every: 1", 6, "`follow.every` has no unit. Did you mean `1s`?"),
        ("follow:\n  every: 2m", 6, "`follow.every` is `120s`. It must be between 1s and 60s."),
        ("follow:\n  for: 1s", 6, "`follow.for` is `1s`. It must be between 10s and 3600s."),
        ("follow:\n  fro: 10m", 6, "`follow.fro` is an unknown key. Did you mean `for`?"),
        ("follow: 1s", 5, "`follow`"),
        ("dead_letters: {}", 5, "`dead_letters.topic` is missing"),
        ("dead_letters:\n  topic: a b", 6, "`dead_letters.topic`"),
        ("dead_letters:\n  topic: dead\n  conection: x", 7, "Did you mean `connection`?"),
        ("spark:\n  connection: a b", 6, "`spark.connection` is not the id of a connection"),
        ("log:\n  path: log/orders", 6, "`log.path` is `log/orders`, which depends on where it is read"),
        ("log:\n  path: ~/log", 6, "depends on where it is read"),
        ("log:\n  path: ''", 6, "depends on where it is read"),
        ('log:\n  path: "/a\\u0007"', 6, "a character in it that cannot be seen"),
        (
            "log:\n  path: s3a://key:hunter2@bucket/x",
            6,
            "has a password in it. Secrets belong in the connection",
        ),
        ("log:\n  path: /data/$USER", 6, "has a $ that begins no variable. Write ${NAME}"),
        (
            "log:\n  path: ${TIDEMARK_HOM}/log",
            6,
            "names ${TIDEMARK_HOM}, which is not set in the environment. Did you mean",
        ),
        ("expectations: a/b", 5, "`expectations` is `a/b`. Use letters, digits, - and _ only."),
    ],
)
def test_one_value(tmp_path, rest, line, said):
    check(tmp_path, HEAD + WRITERS + rest + "\n", line, said)


@pytest.mark.parametrize(
    ("rest", "line", "said"),
    [
        ("keyspace: 1st", 6, "is `1st`, which CQL cannot name"),
        ("keyspace: my-journal", 6, "is `my-journal`, which CQL cannot name"),
        ("keyspace: Journal", 6, "which Cassandra would fold. Did you mean `journal`?"),
        ("keyspace: keyspace", 6, "a reserved word of CQL"),
        ("keyspace: tidemark", 6, "is `tidemark`, which holds positions and gates"),
        ("keyspace: system_auth", 6, "belongs to Cassandra"),
        (f"keyspace: {'a' * 49}", 6, "longer than 48 characters"),
        ("tables:\n      pointer2: select", 7, "`writers[0].tables.pointer2` is `select`, a reserved word"),
        ("tables:\n      locks: journal", 7, "`writers[0].tables.locks` is `journal`, as `journal` is"),
        ("segment_size: 1", 6, "is `1`. It must be at least 2."),
        ("consistency: ANY", 6, "is `ANY`, which is not one of ONE, TWO,"),
        ("consistency: SERIAL", 6, "is `SERIAL`, which is not one of ONE, TWO,"),
        ("consistency: LOCAL_QUORM", 6, "Did you mean `LOCAL_QUORUM`?"),
        ("consistency: local_quorum", 6, "Did you mean `LOCAL_QUORUM`?"),
        ("start: latest", 6, "its pointers would promise messages that were never written"),
        ("start: recreatd", 6, "Did you mean `recreated`?"),
        ("connection: a b", 6, "`writers[0].connection` is not the id of a connection"),
        (
            "replication: {class: Simple}",
            6,
            "is `Simple`, which is not one of SimpleStrategy, NetworkTopologyStrategy.",
        ),
        (
            "replication: {class: SimpleStrategy}",
            6,
            "`writers[0].replication` has no factor. Add `replication_factor`.",
        ),
        ("replication: {class: NetworkTopologyStrategy}", 6, "has no factor. Add the data centres"),
        ("replication:\n      dc1: 3", 7, "`writers[0].replication.dc1` is not a key of SimpleStrategy"),
        ("replication:\n      replication_factor: 0", 7, "is `0`. It must be at least 1."),
        ("replication:\n      replication_factor: '3'", 7, "must be a whole number, not text"),
        (
            "replication:\n      class: NetworkTopologyStrategy\n      dc'1: 3",
            8,
            "is not the name of a data centre",
        ),
    ],
)
def test_a_journal(tmp_path, rest, line, said):
    check(tmp_path, JOURNAL + f"    {rest}\n", line, said)


@pytest.mark.parametrize(
    ("rest", "line", "said"),
    [
        ("format: csv", 7, "is `csv`, which is not one of parquet, jsonl."),
        ("format: json", 7, "Did you mean `jsonl`?"),
        ("start: erliest", 7, "Did you mean `earliest`?"),
        ("keyspace: journal", 7, "`writers[0].keyspace` is an unknown key"),
    ],
)
def test_a_files_writer(tmp_path, rest, line, said):
    check(tmp_path, ARCHIVE + f"    path: /data/archive\n    {rest}\n", line, said)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "jornal",
            "is `jornal`, which no writer is. Kinds: journal, files, kafka, collection. "
            "Did you mean `journal`?",
        ),
        ("documents", "is `documents`, which no writer is. Kinds: journal, files, kafka, collection."),
        ("", "is empty, which no writer is. Kinds: journal, files, kafka, collection."),
        ("[journal]", "is a list, which no writer is. Kinds: journal, files, kafka, collection."),
    ],
)
def test_a_kind_that_does_not_exist(tmp_path, kind, said):
    check(tmp_path, HEAD + f"writers:\n  - name: w\n    kind: {kind}\n", 5, f"`writers[0].kind` {said}")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(", "is not a regular expression: missing ), unterminated subpattern"),
        ("a{99999999999}", "is not a regular expression"),
        ("^(?!test)", "looks around"),
        ("(?=a)", "looks around"),
        ("(?<=a)b", "looks around"),
        ("x(y|(z(?<!a)))+", "looks around"),
        (r"(a)\1", "refers back to a group"),
        ("(?P<a>x)(?P=a)", "refers back to a group"),
        (r"(?i)(a)\1", "refers back to a group"),
        ("(a)?(?(1)b|c)", "depends on whether a group matched"),
        ("a++", "has a possessive repeat"),
        ("(?>a)", "has an atomic group"),
    ],
)
def test_an_expression_that_is_refused(tmp_path, expression, said):
    check(tmp_path, JOURNAL + f"    namespaces: '{expression}'\n", 6, said)


@pytest.mark.parametrize("name", ["orders_r2", "orders_r10", "a_r0"])
def test_keyspaces_of_renditions_are_reserved(tmp_path, name):
    check(tmp_path, JOURNAL + f"    keyspace: {name}\n", 6, "belong to the renditions")


@pytest.mark.parametrize("path", ["/data/archive.r2", "/data/archive.r12/"])
def test_folders_of_renditions_are_reserved(tmp_path, path):
    check(tmp_path, ARCHIVE + f"    path: {path}\n", 6, "belong to the renditions")


COPY = HEAD + "writers:\n  - name: copy\n    kind: kafka\n"


def test_topics_of_renditions_are_reserved(tmp_path):
    check(tmp_path, COPY + "    topic: copies.r2\n", 6, "belong to the renditions")


@pytest.mark.parametrize("read", ["{topics: [copies.r2]}", "{topic_prefixes: [copies.r]}"])
def test_a_pipeline_does_not_read_the_topics_of_its_renditions(tmp_path, read):
    content = COPY.replace("{topics: [orders]}", read) + "    topic: copies\n"
    check(tmp_path, content, 6, "a rendition of the writer would feed the pipeline")
