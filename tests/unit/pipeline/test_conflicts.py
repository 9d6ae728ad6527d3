"""What two pipeline files may not both have. The first by path keeps it, the other one is refused."""

import pytest

from tidemark.pipeline.loader import load_pipelines, shared_topics
from tidemark.pipeline.model import KafkaSource
from tidemark.settings import Settings

pytestmark = pytest.mark.unit


@pytest.fixture
def loads(tmp_path):
    """Writes files into the pipelines folder, loads them: the names that go on, and what was refused."""
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)

    def load(**files):
        for name, content in files.items():
            (folder / f"{name}.yaml").write_text(content)
        loaded = load_pipelines(Settings.read({"TIDEMARK_ROOT": str(tmp_path)}))
        problems = [
            (refusal.file.stem, problem.line, problem.text)
            for refusal in loaded.refused
            for problem in refusal.problems
        ]
        return [pipeline.name for pipeline in loaded.pipelines], problems

    return load


def journal(name, topics, keyspace="journal", connection="cassandra_default"):
    return f"""\
name: {name}
source: {{kafka: {topics}}}
writers:
  - name: cassandra
    kind: journal
    connection: {connection}
    keyspace: {keyspace}
"""


def files(name, path, log=None):
    return f"""\
name: {name}
source: {{kafka: {{topics: [orders]}}}}
log:
  path: {log or f"/log/{name}"}
writers:
  - name: archive
    kind: files
    path: {path}
"""


def test_two_pipelines_have_two_names(loads):
    going_on, problems = loads(a=files("orders", "/a", "/log/a"), b=files("orders", "/b", "/log/b"))
    assert going_on == ["orders"]
    ((file, line, text),) = problems
    assert (file, line) == ("b", 1)
    assert text.startswith("`name` is `orders`, which /")
    assert "a.yaml has already" in text


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("{topics: [orders]}", "{topics: [carts, orders]}", "orders"),
        ("{topics: [orders.eu]}", "{topic_prefixes: [orders.]}", "orders.eu"),
        ("{topic_prefixes: [orders.]}", "{topics: [orders.eu]}", "orders.eu"),
        ("{topic_prefixes: [orders.]}", "{topic_prefixes: [orders.eu]}", "orders.eu*"),
        ("{topic_prefixes: [orders.eu]}", "{topic_prefixes: [orders.]}", "orders.eu*"),
    ],
)
def test_two_pipelines_do_not_write_the_same_topic_into_the_same_keyspace(loads, first, second, shared):
    going_on, problems = loads(a=journal("a", first), b=journal("b", second))
    assert going_on == ["a"]
    ((file, line, text),) = problems
    assert (file, line) == ("b", 7)
    assert text.startswith("`writers[0].keyspace` is `journal`, where /")
    assert f"a.yaml writes {shared} already" in text


@pytest.mark.parametrize(
    "second",
    [
        journal("b", "{topics: [carts]}"),
        journal("b", "{topic_prefixes: [orders.]}"),
        journal("b", "{topics: [orders]}", keyspace="other"),
        journal("b", "{topics: [orders]}", connection="cassandra_us"),
        files("b", "/archive"),
    ],
)
def test_different_topics_keyspaces_and_clusters_go_together(loads, second):
    assert loads(a=journal("a", "{topics: [orders]}"), b=second) == (["a", "b"], [])


def test_two_files_writers_have_two_folders(loads):
    going_on, problems = loads(a=files("a", "/archive"), b=files("b", "/archive/"))
    assert going_on == ["a"]
    ((file, line, text),) = problems
    assert (file, line) == ("b", 8)
    assert text.startswith(
        "`writers[0].path` is `/archive/`, which shares a folder with `writers[0].path` of /"
    )


def republisher(name, topic="copy", connection="kafka_default"):
    return f"""\
name: {name}
source: {{kafka: {{topics: [orders]}}}}
writers:
  - name: out
    kind: kafka
    topic: {topic}
    connection: {connection}
"""


def test_two_pipelines_do_not_republish_to_the_same_topic(loads):
    going_on, problems = loads(a=republisher("a"), b=republisher("b"))
    assert going_on == ["a"]
    ((file, line, text),) = problems
    assert (file, line) == ("b", 6)
    assert text.startswith("`writers[0].topic` is `copy`, which /")
    assert "a.yaml writes to already" in text


@pytest.mark.parametrize("other", [{"topic": "other"}, {"connection": "kafka_far"}])
def test_two_pipelines_may_republish_to_two_topics(loads, other):
    assert loads(a=republisher("a"), b=republisher("b", **other)) == (["a", "b"], [])


def test_two_logs_have_two_folders(loads):
    going_on, problems = loads(a=files("a", "/a", log="/log"), b=files("b", "/b", log="file:///log"))
    assert going_on == ["a"]
    ((file, line, text),) = problems
    assert (file, line) == ("b", 4)
    assert "shares a folder with `log.path` of /" in text


def test_a_log_and_a_files_writer_have_two_folders(loads):
    going_on, problems = loads(a=files("a", "/a", log="/kept"), b=files("b", "/kept/archive"))
    assert going_on == ["a"]
    assert [(file, line) for file, line, _ in problems] == [("b", 8)]


def test_a_refused_file_takes_nothing_away_from_later_ones(loads):
    going_on, problems = loads(
        a=files("a", "/a"),
        b=files("a", "/c", log="/log/b"),  # refused for its name, so its folder stays free
        c=files("c", "/c"),
    )
    assert going_on == ["a", "c"]
    assert [file for file, _, _ in problems] == ["b"]


def test_everything_two_files_share_is_said(loads):
    _, problems = loads(a=files("a", "/a"), b=files("a", "/a", log="/log/a"))
    assert [(file, line) for file, line, _ in problems] == [("b", 1), ("b", 4), ("b", 8)]


def test_a_default_keyspace_is_reported_on_the_line_of_its_writer(loads):
    short = "name: {0}\nsource: {{kafka: {{topics: [orders]}}}}\nwriters:\n  - {{name: w, kind: journal}}\n"
    _, problems = loads(a=short.format("a"), b=short.format("b"))
    assert [(file, line) for file, line, _ in problems] == [("b", 4)]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"topics": ["a", "b"]}, {"topics": ["b", "c"]}, {"b"}),
        ({"topics": ["a"]}, {"topics": ["ab"]}, set()),
        ({"topics": ["ab"]}, {"topic_prefixes": ["a"]}, {"ab"}),
        ({"topics": ["a"]}, {"topic_prefixes": ["ab"]}, set()),
        ({"topic_prefixes": ["a"]}, {"topic_prefixes": ["a"]}, {"a*"}),
        ({"topic_prefixes": ["a"]}, {"topic_prefixes": ["b"]}, set()),
    ],
)
def test_shared_topics(one, other, shared):
    assert shared_topics(KafkaSource(**one), KafkaSource(**other)) == shared
    assert shared_topics(KafkaSource(**other), KafkaSource(**one)) == shared


@pytest.mark.parametrize(("first", "second"), [("/archive", "/archive.r2/b"), ("/archive.r2/b", "/archive")])
def test_no_writer_has_a_folder_inside_that_of_another_ones_rendition(loads, first, second):
    going_on, problems = loads(a=files("a", first), b=files("b", second))
    assert going_on == ["a"]
    ((_, _, text),) = problems
    assert "rendition" in text


def test_a_folder_whose_name_only_begins_like_that_of_a_rendition_is_free(loads):
    assert loads(a=files("a", "/archive"), b=files("b", "/archive.raw/b")) == (["a", "b"], [])
