"""Every rule of a pipeline file: the line it points to and what it says.

Each case is the shortest file with one thing wrong; the key that is wrong is on the line expected.
"""

import textwrap

import pytest

from tidemark.delivery.pipeline_file import PipelineRefused, load_pipeline
from tidemark.settings import Settings

pytestmark = pytest.mark.unit

HEAD = "name: orders\nsource: {kafka: {topics: [orders]}}\n"
WRITERS = "writers:\n  - {name: cassandra, kind: journal}\n"
FILES = "writers:\n  - {name: archive, kind: files, path: /data/archive}\n"
JOURNAL = HEAD + "writers:\n  - name: cassandra\n    kind: journal\n"
ARCHIVE = HEAD + "writers:\n  - name: archive\n    kind: files\n"


@pytest.fixture
def refusal(tmp_path):
    """Writes a pipeline file, loads it and gives the refusal."""

    def load(content):
        file = tmp_path / "pipelines" / "orders.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
        with pytest.raises(PipelineRefused) as refused:
            load_pipeline(file, Settings.read({"TIDEMARK_HOME": str(tmp_path)}))
        assert refused.value.file == file
        for problem, line in zip(refused.value.problems, str(refused.value).splitlines(), strict=True):
            assert line == f"{file}:{problem.line}: {problem.text}"
            assert problem.text.endswith((".", "?"))
        return refused.value

    return load


def the_one_problem(refused):
    assert len(refused.problems) == 1, str(refused)
    return refused.problems[0].line, refused.problems[0].text


def check(refusal, content, line, said):
    found_line, text = the_one_problem(refusal(content))
    assert said in text
    assert found_line == line


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("", 1, "the file is empty"),
        ("# only a comment\n", 1, "the file is empty"),
        ("- name: orders\n", 1, "the file is not a mapping"),
        ("# comment\njust text\n", 2, "the file is not a mapping"),
        (
            "name: orders\nsource:\n\tkafka: {}\n",
            3,
            "a tab stands where YAML wants spaces. Indent with spaces.",
        ),
        ("name: orders\nschedule: @daily\n", 2, "Put the value in quotes."),
        ("name: orders\nsource: [\n", 2, "what begins here has no end"),
        ("name: a: b\n", 1, "this is not YAML: mapping values are not allowed here"),
        ("name: 'orders\nsource: x\n", 1, "what begins here has no end"),
        (HEAD + WRITERS + "---\nname: carts\n", 5, "Put each pipeline into a file of its own."),
        (HEAD + WRITERS + "spark: !!python/object:os.system x\n", 5, "this is not a plain value"),
        (HEAD + WRITERS + "spark: *nothing\n", 5, "undefined alias"),
        (HEAD + "a: \x00\n", 3, "a control character"),
        ("[" * 600, 1, "nested too deeply"),
        (b"name: orders\n# caf" + b"\xe9\n", 2, "not UTF-8"),
        ("name: orders".encode("utf-16"), 1, "not UTF-8"),
        (
            HEAD + WRITERS + "name: carts\n",
            5,
            "the key `name` is here for the second time. It is on line 1 already.",
        ),
        (
            HEAD + "writers:\n  - name: a\n    kind: journal\n    name: b\n",
            6,
            "the key `name` is here for the second",
        ),
        (HEAD + WRITERS + "5: x\n", 5, "the key `5` is not text. Put it in quotes."),
        (HEAD + WRITERS + "? {a: 1}\n: x\n", 5, "a list or mapping stands where a key should"),
    ],
)
def test_a_file_that_is_not_yaml_as_it_should_be(refusal, content, line, said):
    check(refusal, content, line, said)


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("source: {kafka: {topics: [orders]}}\n" + WRITERS, 1, "`name` is missing"),
        ("name: orders\n" + WRITERS, 1, "`source` is missing"),
        (HEAD, 1, "`writers` is missing"),
        ("name: orders\nsource: {}\n" + WRITERS, 2, "`source.kafka` is missing"),
        (HEAD + "writers:\n  - kind: journal\n", 4, "`writers[0].name` is missing"),
        (ARCHIVE, 4, "`writers[0].path` is missing"),
        (
            HEAD + "writers:\n  - name: archive\n",
            4,
            "`writers[0].kind` is missing. Add it: journal or files.",
        ),
    ],
)
def test_a_required_key_is_missing(refusal, content, line, said):
    check(refusal, content, line, said)


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (HEAD + WRITERS + "shedule: '@daily'\n", 5, "`shedule` is an unknown key. Did you mean `schedule`?"),
        (
            HEAD + WRITERS + "zzz: 1\n",
            5,
            "`zzz` is an unknown key. Known here: name, source, schedule, limits,",
        ),
        (
            "name: orders\nsource:\n  kafka:\n    topics: [orders]\n    fromat: json\n" + WRITERS,
            5,
            "`source.kafka.fromat` is an unknown key. Did you mean `format`?",
        ),
        (JOURNAL + "    keyspce: j\n", 6, "`writers[0].keyspce` is an unknown key. Did you mean `keyspace`?"),
        (JOURNAL + "    journal: j\n", 6, "`writers[0].journal` is an unknown key."),
        (
            JOURNAL + "    tables:\n      jurnal: j\n",
            7,
            "`writers[0].tables.jurnal` is an unknown key. Did you mean",
        ),
        (HEAD + WRITERS + "log:\n  compaction:\n    minlag: 1h\n", 7, "Did you mean `min_lag`?"),
        (HEAD + WRITERS + "expiry:\n  time_zone: UTC\n", 6, "Did you mean `timezone`?"),
        (JOURNAL + "    transforms: []\n", 6, "A journal takes no transforms"),
    ],
)
def test_an_unknown_key(refusal, content, line, said):
    check(refusal, content, line, said)


@pytest.mark.parametrize(
    "key", ["password", "sasl_password", "sasl.jaas.config", "api_key", "ssl_keyfile", "username"]
)
def test_a_secret_is_sent_to_the_connection_and_not_repeated(refusal, key):
    refused = refusal(JOURNAL + f"    {key}: hunter2\n")
    line, text = the_one_problem(refused)
    assert line == 6
    assert "Secrets belong in the connection" in text
    assert "hunter2" not in str(refused)


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (
            "name: 5\n" + HEAD.partition("\n")[2] + WRITERS,
            1,
            "`name` must be text, not `5`. Put it in quotes.",
        ),
        (HEAD + WRITERS + "limits:\n", 5, "`limits` has no value. Give a mapping, or remove the key."),
        (HEAD + WRITERS + "limits: 5\n", 5, "`limits` must be a mapping, not `5`"),
        (HEAD + WRITERS + "log: []\n", 5, "`log` must be a mapping, not a list"),
        (HEAD + WRITERS + "log: {compaction: journal}\n", 5, "`log.compaction` must be a mapping, not text"),
        (
            "name: orders\nsource: {kafka: {topics: orders}}\n" + WRITERS,
            2,
            "must be a list, not text. Put it in brackets",
        ),
        (HEAD + "writers: {name: a, kind: journal}\n", 3, "`writers` must be a list, not a mapping"),
        (HEAD + "writers: []\n", 3, "`writers` is an empty list. Name at least one."),
        (HEAD + "writers:\n  - journal\n", 4, "`writers[0]` must be a mapping, not text"),
        (HEAD + WRITERS + "schedule: 5\n", 5, "`schedule` must be text, not `5`"),
        (
            ARCHIVE + "    path: /a\n    transforms: upper\n",
            7,
            "`writers[0].transforms` must be a list, not text",
        ),
    ],
)
def test_a_value_of_the_wrong_type(refusal, content, line, said):
    check(refusal, content, line, said)


@pytest.mark.parametrize("name", ["a b", "a.b", "a/b", "é", "''", "${HOME}", '"a\\n"', "a" * 201])
def test_a_pipeline_name_has_letters_digits_dashes_and_underscores(refusal, name):
    line, text = the_one_problem(
        refusal(f"name: {name}\nsource: {{kafka: {{topics: [orders]}}}}\n" + WRITERS)
    )
    assert line == 1
    assert text.startswith("`name` is ")


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
            "is `jsn`, which is not one of kafka-journal, json, raw. Did you mean `json`?",
        ),
        ("topics: [a]\n    start: latest", 5, "is `latest`, which is not one of earliest, pointers."),
        ("topics: [a]\n    isolation: committed", 5, "Did you mean `read_committed`?"),
        ("topics: [a]\n    connection: 'kafka://me:hunter2@host'", 5, "is not the id of a connection"),
    ],
)
def test_a_source(refusal, kafka, line, said):
    refused = refusal(f"name: orders\nsource:\n  kafka:\n    {kafka}\n" + FILES)
    check(lambda _: refused, None, line, said)
    assert "hunter2" not in str(refused)


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
def test_a_schedule_that_is_not_one(refusal, schedule):
    check(
        refusal, HEAD + WRITERS + f"schedule: '{schedule}'\n", 5, 'Write five fields, such as "*/5 * * * *"'
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
def test_one_value(refusal, rest, line, said):
    check(refusal, HEAD + WRITERS + rest + "\n", line, said)


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
        ("start: latest", 6, "its pointers would promise messages nobody wrote"),
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
def test_a_journal(refusal, rest, line, said):
    check(refusal, JOURNAL + f"    {rest}\n", line, said)


@pytest.mark.parametrize(
    ("rest", "line", "said"),
    [
        ("format: csv", 7, "is `csv`, which is not one of parquet, jsonl."),
        ("format: json", 7, "Did you mean `jsonl`?"),
        ("start: erliest", 7, "Did you mean `earliest`?"),
        ("transforms: [upper]", 7, "no transform exists in this version"),
        ("keyspace: journal", 7, "`writers[0].keyspace` is an unknown key"),
    ],
)
def test_a_files_writer(refusal, rest, line, said):
    check(refusal, ARCHIVE + f"    path: /data/archive\n    {rest}\n", line, said)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("jornal", "is `jornal`, which no writer is. Kinds: journal, files. Did you mean `journal`?"),
        ("documents", "is `documents`, which no writer is. Kinds: journal, files."),
        ("kafka", "is `kafka`, which no writer is. Kinds: journal, files."),
        ("", "is empty, which no writer is. Kinds: journal, files."),
        ("[journal]", "is a list, which no writer is. Kinds: journal, files."),
    ],
)
def test_a_kind_that_does_not_exist(refusal, kind, said):
    check(refusal, HEAD + f"writers:\n  - name: w\n    kind: {kind}\n", 5, f"`writers[0].kind` {said}")


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
def test_an_expression_that_is_refused(refusal, expression, said):
    check(refusal, JOURNAL + f"    namespaces: '{expression}'\n", 6, said)


JSON_SOURCE = "name: orders\nsource:\n  kafka:\n    topics: [orders]\n    format: json\n"
POINTERS = "name: orders\nsource:\n  kafka:\n    topics: [orders]\n    start: pointers\n"


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (HEAD + "writers:\n  - {name: a b, kind: journal}\n", 4, "`writers[0].name` is `a b`"),
        (
            HEAD + "writers:\n  - {name: w, kind: journal}\n  - name: w\n    kind: files\n    path: /a\n",
            5,
            "`writers[1].name` is `w`, as another writer's is",
        ),
        (
            JSON_SOURCE + "writers:\n  - name: c\n    kind: journal\n",
            8,
            "needs messages in format `kafka-journal`",
        ),
        (
            JSON_SOURCE + FILES + "log:\n  compaction:\n    policy: journal\n",
            10,
            "needs messages in format `kafka-journal`",
        ),
        (POINTERS + FILES, 5, "is `pointers`, which needs exactly one writer of kind `journal`, not 0"),
        (
            POINTERS + "writers:\n  - {name: a, kind: journal}\n  - {name: b, kind: journal, keyspace: b}\n",
            5,
            "is `pointers`, which needs exactly one writer of kind `journal`, not 2",
        ),
        (
            HEAD + "writers:\n  - {name: a, kind: journal}\n  - {name: b, kind: journal}\n",
            5,
            "`writers[1].keyspace` is `journal`, as another writer's is",
        ),
        (
            HEAD + "writers:\n  - {name: a, kind: files, path: /a}\n  - {name: b, kind: files, path: /a/}\n",
            5,
            "`writers[1].path` is `/a/`, which shares a folder with `writers[0].path`",
        ),
        (
            HEAD + "log: {path: /a}\nwriters:\n  - {name: b, kind: files, path: /a/b}\n",
            5,
            "`writers[0].path` is `/a/b`, which shares a folder with `log.path`",
        ),
    ],
)
def test_keys_that_contradict_each_other(refusal, content, line, said):
    check(refusal, content, line, said)


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_lines(refusal):
    refused = refusal(
        """\
        name: or ders
        source:
          kafka: {topics: [orders], fromat: json}
        shedule: "@daily"
        name: carts
        writers:
          - name: cassandra
            kind: journal
            segment_size: 1
            start: latest
          - name: archive
            kind: file
        expectations: missing
        """
    )
    assert [problem.line for problem in refused.problems] == [1, 3, 4, 5, 9, 10, 12, 13]


def test_contradictions_are_all_said_at_once(refusal):
    refused = refusal(JSON_SOURCE + "writers:\n  - {name: a, kind: journal}\n  - {name: a, kind: journal}\n")
    assert [problem.line for problem in refused.problems] == [7, 8, 8, 8]


def test_a_long_value_is_cut_and_kept_on_one_line(refusal):
    _, text = the_one_problem(refusal(HEAD + WRITERS + f'schedule: "{"a b" * 100}\\n{"c" * 100}"\n'))
    assert "…`" in text
    assert len(text) < 250


def test_a_line_inside_an_anchor_is_the_line_of_the_anchor(refusal):
    content = (
        HEAD
        + "writers:\n  - &w\n    name: a\n    kind: journal\n    segment_size: 1\n  - <<: *w\n    name: b\n"
    )
    refused = refusal(content)
    assert [problem.line for problem in refused.problems] == [7, 7]
