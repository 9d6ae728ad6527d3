"""A pipeline's own expectations: what a file of them may say, and how a wrong one is refused."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tidemark.errors import TidemarkError
from tidemark.log.expectations import BadSuite, ExpectationDeclaration, Suite, load_suite
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.statistics import FileStatistics
from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

PAGE = (ROOT / "docs" / "expectations.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

STRICT = """
captured_files:
  - type: expect_column_values_to_be_between
    kwargs: {column: null_keys, max_value: 0}
    severity: warning
    notes: records without a key belong to no entity
messages:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: value}
"""
STRICT_JSON = """{
\t"captured_files": [{
\t\t"type": "expect_column_values_to_be_between",
\t\t"kwargs": {"column": "null_keys", "max_value": 0},
\t\t"severity": "warning",
\t\t"notes": "records without a key belong to no entity"
\t}],
\t"messages": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "value"}}]
}"""
STRICT_SUITE = Suite(
    captured_files=(
        ExpectationDeclaration(
            type="expect_column_values_to_be_between",
            kwargs={"column": "null_keys", "max_value": 0},
            severity="warning",
            notes="records without a key belong to no entity",
        ),
    ),
    messages=(
        ExpectationDeclaration(type="expect_column_values_to_not_be_null", kwargs={"column": "value"}),
    ),
)


def given_suite(folder: Path, text: str | bytes, file: str = "strict.yaml") -> Path:
    (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / file


def refusal_of(folder: Path, name: str = "strict") -> BadSuite:
    with pytest.raises(BadSuite) as refused:
        load_suite(folder, name)
    return refused.value


# What is taken


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("strict.yaml", STRICT, id="YAML"),
        pytest.param("strict.json", STRICT_JSON, id="JSON, indented with tabs"),
    ],
)
def test_a_suite_is_what_its_file_says(tmp_path, file, text):
    given_suite(tmp_path, text, file)
    assert load_suite(tmp_path, "strict") == STRICT_SUITE


def test_json_has_escapes_of_its_own(tmp_path):
    given_suite(tmp_path, r'{"messages": [{"type": "x", "notes": "\ud83d\ude00"}]}', "strict.json")
    assert load_suite(tmp_path, "strict").messages[0].notes == "😀"


def test_an_expectation_is_critical_unless_it_says_otherwise(tmp_path):
    given_suite(tmp_path, "messages: [{type: x}]")
    (declared,) = load_suite(tmp_path, "strict").messages
    assert (declared.severity, declared.notes, declared.kwargs) == ("critical", None, {})


@pytest.mark.parametrize("severity", ["critical", "warning", "info"])
def test_every_severity_of_great_expectations_is_taken(tmp_path, severity):
    given_suite(tmp_path, f"captured_files: [{{type: x, severity: {severity}}}]")
    assert load_suite(tmp_path, "strict").captured_files[0].severity == severity


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("# nothing but a comment\n", id="a comment"),
        pytest.param("captured_files: []\nmessages: []\n", id="empty lists"),
        pytest.param("captured_files:\nmessages:\n#  - type: x\n", id="items commented out"),
    ],
)
def test_a_file_without_expectations_expects_nothing(tmp_path, text):
    given_suite(tmp_path, text)
    assert load_suite(tmp_path, "strict") == Suite()


def test_the_default_suite_needs_no_file(tmp_path):
    assert load_suite(tmp_path, "default") == Suite()


def test_the_default_suite_needs_no_folder(tmp_path):
    assert load_suite(tmp_path / "missing", "default") == Suite()


def test_the_default_suite_is_what_its_file_says_where_there_is_one(tmp_path):
    given_suite(tmp_path, STRICT, "default.yaml")
    assert load_suite(tmp_path, "default") == STRICT_SUITE


def test_a_suite_cannot_be_changed_once_it_is_loaded():
    with pytest.raises(ValueError, match="frozen"):
        STRICT_SUITE.messages = ()


# What is refused


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("messages: [", "this is not YAML (line 1: expected the node content,", id="torn"),
        pytest.param(
            "messages: []\nmessages: []", "this is not YAML (line 2: found duplicate", id="key twice"
        ),
        pytest.param("a: 1\n---\nb: 2", "this is not YAML (line 2: ", id="two documents"),
        pytest.param("messages: !!python/name:os.system", "this is not YAML (line 1: ", id="code"),
        pytest.param(b"messages: [{type: \xff}]", "this is not YAML ('utf-8' codec can't", id="not text"),
        pytest.param("- type: x", "the file: Input should be a valid dictionary", id="a list"),
        pytest.param("[]", "the file: Input should be a valid dictionary", id="an empty list"),
        pytest.param("false", "the file: Input should be a valid dictionary", id="a scalar"),
        pytest.param("mesages: []", "mesages: Extra inputs are not permitted", id="unknown list"),
        pytest.param("messages: x", "messages: Input should be a valid tuple", id="not a list"),
        pytest.param("messages: [x]", "messages.0: Input should be a valid dictionary", id="not a mapping"),
        pytest.param("messages: [{kwargs: {}}]", "messages.0.type: Field required", id="no type"),
        pytest.param(
            "messages: [{type: x}, {type: x, kwarg: {}}]",
            "messages.1.kwarg: Extra inputs are not permitted",
            id="unknown key",
        ),
        pytest.param(
            "captured_files: [{type: x, severity: fatal}]",
            "captured_files.0.severity: Input should be 'critical', 'warning' or 'info'",
            id="bad severity",
        ),
        pytest.param("messages: [{type: x, kwargs: }]", "messages.0.kwargs: Input should", id="no kwargs"),
        pytest.param("messages: [{type: x, notes: 7}]", "messages.0.notes: Input should", id="bad notes"),
        pytest.param(
            "messages: [{type: x, kwargs: {column: id, severity: info}}]",
            "messages.0.kwargs: Value error, severity cannot be part of kwargs",
            id="severity among the kwargs",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_the_problem(tmp_path, text, problem):
    file = given_suite(tmp_path, text)
    refused = refusal_of(tmp_path)
    assert refused.file == file
    assert refused.problem.startswith(problem)


def test_torn_json_is_refused_with_the_line(tmp_path):
    given_suite(tmp_path, '{"messages":\n[', "strict.json")
    assert refusal_of(tmp_path).problem == "this is not JSON (Expecting value: line 2 column 2 (char 14))."


def test_a_refusal_says_what_did_not_happen_and_what_to_do(tmp_path):
    file = given_suite(tmp_path, "mesages: []")
    assert str(refusal_of(tmp_path)) == (
        f"{file}: mesages: Extra inputs are not permitted. "
        "Nothing was captured; correct the file and run again."
    )


def test_only_a_person_can_put_a_suite_right():
    assert issubclass(BadSuite, TidemarkError)
    assert BadSuite.needs_person


def test_a_suite_without_a_file_is_refused(tmp_path):
    refused = refusal_of(tmp_path)
    assert (refused.file, refused.problem) == (tmp_path / "strict.yaml", "there is no such file.")


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    given_suite(tmp_path, STRICT)

    def refuse(self, encoding):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert refusal_of(tmp_path).problem == "this cannot be read (Permission denied)."


# What comes with Tidemark


def test_the_default_suite_that_comes_with_tidemark_warns_of_records_without_a_key():
    (declared,) = load_suite(ROOT / "include" / "expectations", "default").captured_files
    assert declared == STRICT_SUITE.captured_files[0]


def test_the_default_suite_that_comes_with_tidemark_starts_no_second_pass():
    assert load_suite(ROOT / "include" / "expectations", "default").messages == ()


def test_the_example_in_the_default_suite_works(tmp_path):
    text = (ROOT / "include" / "expectations" / "default.yaml").read_text()
    _, examples = text.split("\nmessages:\n")
    given_suite(tmp_path, "messages:\n" + examples.replace("#", ""))
    suite = load_suite(tmp_path, "strict")
    assert [one.notes for one in (*suite.messages, *suite.delivered)] == [
        "no message is larger than 1 MB",
        "no entity has more than 100,000 events",
    ]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_on_the_page_work(tmp_path, text):
    given_suite(tmp_path, text)
    suite = load_suite(tmp_path, "strict")
    assert suite.captured_files or suite.messages or suite.delivered


def test_the_page_has_examples_of_all_lists():
    lists = {"captured_files:", "messages:", "delivered:"}
    assert {word for word in lists if word in "".join(EXAMPLES)} == lists


@pytest.mark.parametrize(
    "column", [*(field.name for field in fields(FileStatistics)), "width", "gap_before", *LOG_SCHEMA.names]
)
def test_the_page_names_every_column(column):
    assert f"`{column}`" in PAGE
