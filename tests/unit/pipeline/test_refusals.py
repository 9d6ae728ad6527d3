"""Every rule of a pipeline file: the line it points to and what it says.

Each case is the shortest file with one thing wrong; the key that is wrong is on the line expected.
"""

import pytest
from tests.support.pipeline_files import (
    ARCHIVE,
    FILES,
    HEAD,
    JOURNAL,
    WRITERS,
    check,
    refusal,
    the_one_problem,
)

pytestmark = pytest.mark.unit


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
def test_a_file_that_is_not_yaml_as_it_should_be(tmp_path, content, line, said):
    check(tmp_path, content, line, said)


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
            "`writers[0].kind` is missing. Add it: journal or files or kafka or collection.",
        ),
    ],
)
def test_a_required_key_is_missing(tmp_path, content, line, said):
    check(tmp_path, content, line, said)


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
def test_an_unknown_key(tmp_path, content, line, said):
    check(tmp_path, content, line, said)


@pytest.mark.parametrize(
    "key", ["password", "sasl_password", "sasl.jaas.config", "api_key", "ssl_keyfile", "username"]
)
def test_a_secret_is_sent_to_the_connection_and_not_repeated(tmp_path, key):
    refused = refusal(tmp_path, JOURNAL + f"    {key}: hunter2\n")
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
def test_a_value_of_the_wrong_type(tmp_path, content, line, said):
    check(tmp_path, content, line, said)


@pytest.mark.parametrize("name", ["a b", "a.b", "a/b", "é", "''", "${HOME}", '"a\\n"', "a" * 201])
def test_a_pipeline_name_has_letters_digits_dashes_and_underscores(tmp_path, name):
    line, text = the_one_problem(
        refusal(tmp_path, f"name: {name}\nsource: {{kafka: {{topics: [orders]}}}}\n" + WRITERS)
    )
    assert line == 1
    assert text.startswith("`name` is ")


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
        (
            HEAD + WRITERS + "dead_letters:\n  topic: orders\n",
            6,
            "`dead_letters.topic` is `orders`, which this pipeline reads: it would feed itself forever.",
        ),
        (
            HEAD + "writers:\n  - {name: out, kind: kafka, topic: copy}\ndead_letters:\n  topic: copy\n",
            6,
            "`dead_letters.topic` is `copy`, which a writer of this pipeline writes.",
        ),
        (
            HEAD + "writers:\n  - name: out\n    kind: kafka\n    topic: orders\n",
            6,
            "`writers[0].topic` is `orders`, which this pipeline reads: it would feed itself forever.",
        ),
        (
            "name: orders\nsource: {kafka: {topic_prefixes: [or]}}\n"
            "writers:\n  - {name: out, kind: kafka, topic: orders-copy}\n",
            4,
            "`writers[0].topic` is `orders-copy`, which this pipeline reads",
        ),
        (
            HEAD + "writers:\n  - {name: a, kind: kafka, topic: t}\n  - {name: b, kind: kafka, topic: t}\n",
            5,
            "`writers[1].topic` is `t`, as another writer's is. Give every writer its own topic.",
        ),
    ],
)
def test_keys_that_contradict_each_other(tmp_path, content, line, said):
    check(tmp_path, content, line, said)


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_lines(tmp_path):
    refused = refusal(
        tmp_path,
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
        """,
    )
    assert [problem.line for problem in refused.problems] == [1, 3, 4, 5, 9, 10, 12, 13]


def test_contradictions_are_all_said_at_once(tmp_path):
    refused = refusal(
        tmp_path, JSON_SOURCE + "writers:\n  - {name: a, kind: journal}\n  - {name: a, kind: journal}\n"
    )
    assert [problem.line for problem in refused.problems] == [7, 8, 8, 8]


def test_a_long_value_is_cut_and_kept_on_one_line(tmp_path):
    _, text = the_one_problem(
        refusal(tmp_path, HEAD + WRITERS + f'schedule: "{"a b" * 100}\\n{"c" * 100}"\n')
    )
    assert "…`" in text
    assert len(text) < 250


def test_a_line_inside_an_anchor_is_the_line_of_the_anchor(tmp_path):
    content = (
        HEAD
        + "writers:\n  - &w\n    name: a\n    kind: journal\n    segment_size: 1\n  - <<: *w\n    name: b\n"
    )
    refused = refusal(tmp_path, content)
    assert [problem.line for problem in refused.problems] == [7, 7]
