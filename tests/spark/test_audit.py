"""The audit: Great Expectations judges what a capture counted, and every message where a suite asks for it.

The record itself, without Great Expectations, is in tests/unit/log/test_audit.py.
"""

import gc
import re
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from pyspark import StorageLevel
from tests.support.log_samples import capture, given_binding

from tidemark.log.audit import BadExpectation, audit_files, judge, pandas_batch
from tidemark.log.expectations import ExpectationDeclaration, Suite, load_suite
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord, Judgement
from tidemark.log.model.statistics import FileStatistics
from tidemark.settings import ROOT
from tidemark.spark.jobs.capture import audit_messages
from tidemark.spark.jobs.read_log import read_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:great_expectations"),  # at import
]

BETWEEN = "expect_column_values_to_be_between"
NOT_NULL = "expect_column_values_to_not_be_null"


def given_file(path: str, partition: int, lower: int, upper: int, first_id: int) -> FileStatistics:
    """A file with a message for every offset that was bound."""
    width = upper - lower
    last_id = first_id + width - 1
    return FileStatistics(
        **{"path": path, "topic": "orders", "partition": partition, "lower": lower, "upper": upper},
        **{"first_owned_id": first_id, "last_owned_id": last_id, "first_id": first_id, "last_id": last_id},
        **{"first_offset": lower, "last_offset": upper - 1, "rows_written": width},
        **dict.fromkeys(("disorder", "misnumbered", "strangers", "null_keys", "null_values"), 0),
        **{"first_timestamp": 5, "last_timestamp": 6, "bytes": 1_000, "digest": "d"},
    )


A = given_file("files/a", 0, lower=0, upper=3, first_id=100)
B = given_file("files/b", 1, lower=7, upper=9, first_id=103)
OF_B = (103, 104)
RULES = [
    "offsets begin in the bound range",
    "offsets end in the bound range",
    "offsets grow",
    "ids are those of the binding",
    "ids are unique",
    "rows written = rows read",
    "no namespace outside the declaration",
    "every offset has a record",
]


def declare(type_: str, notes: str | None = None, severity: Any = "critical", **kwargs: Any) -> Any:
    return ExpectationDeclaration(type=type_, kwargs=kwargs, severity=severity, notes=notes)


def audited(
    *files: FileStatistics, own: tuple[ExpectationDeclaration, ...] = (), rows_read: int | None = None
) -> AuditRecord:
    """The record of a capture of these files, by the rules that always hold and the pipeline's own."""
    read = sum(one.rows_written for one in files) if rows_read is None else rows_read
    judgements = audit_files("orders", files, read, Suite(captured_files=own))
    return AuditRecord(1_000, "captured-digest", tuple(judgements))


# The rules that always hold


def test_a_right_capture_keeps_every_rule():
    record = audited(A, B)
    assert [j.title for j in record.judgements if j.success] == RULES
    assert record.passed


@pytest.mark.parametrize(
    ("title", "change", "detail", "ids"),
    [
        (
            "offsets begin in the bound range",
            {"first_offset": 6},
            "first_offset 6, path files/b, lower 7",
            OF_B,
        ),
        ("offsets end in the bound range", {"last_offset": 9}, "upper 9, path files/b, last_offset 9", OF_B),
        ("offsets grow", {"disorder": 2}, "disorder 2, path files/b", OF_B),
        ("ids are those of the binding", {"misnumbered": 1}, "misnumbered 1, path files/b", OF_B),
        ("ids are unique", {"first_id": 102}, "gap_before 0, path files/b", (102, 104)),
        ("no namespace outside the declaration", {"strangers": 2}, "strangers 2, path files/b", OF_B),
    ],
)
def test_a_broken_rule_is_critical_and_names_the_ids(title, change, detail, ids):
    record = audited(A, replace(B, **change))
    assert [(j.title, j.detail, j.ids) for j in record.failures] == [(title, detail, ids)]


def test_records_that_were_lost_on_the_way_are_critical():
    (failure,) = audited(A, B, rows_read=6).failures
    assert (failure.title, failure.detail) == ("rows written = rows read", "found 5")


def test_records_of_which_no_file_came_are_critical():
    assert [failure.title for failure in audited(rows_read=1).failures] == ["rows written = rows read"]


def test_holes_only_warn():
    record = audited(replace(A, rows_written=2), B)
    assert [(j.title, j.ids) for j in record.warnings] == [("every offset has a record", (100, 102))]
    assert record.passed


def test_a_capture_without_a_record_passes():
    assert [j.title for j in audited().judgements if j.success] == RULES


def test_files_are_judged_in_id_order_however_they_are_given():
    assert audited(B, A).passed


def test_ids_span_all_files_that_offend():
    (failure,) = audited(replace(A, misnumbered=1), replace(B, misnumbered=1)).failures
    assert failure.ids == (100, 104)


def test_of_many_files_some_are_named_and_the_others_are_counted():
    files = [replace(A, path=f"files/{i}", first_id=i, last_id=i, disorder=1) for i in range(120)]
    (failure,) = audited(*files).failures
    assert failure.detail == "".join(f"disorder 1, path files/{i}; " for i in range(5)) + "and 115 more"
    assert failure.ids == (0, 119)


def test_two_threads_may_audit_at_once():
    def audit(partition: int) -> list[tuple[int, int] | None]:
        first = 100 * partition
        wrong = replace(given_file("files/w", partition, 0, 3, first_id=first), disorder=1)
        right = [given_file(f"files/{n}", n, 0, 3, first_id=first + 3 * n) for n in range(1, partition + 1)]
        return [failure.ids for failure in audited(wrong, *right).failures]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(audit, [1, 2, 3, 4] * 5))
    assert found == [[(100, 102)], [(200, 202)], [(300, 302)], [(400, 402)]] * 5


def test_rows_that_were_judged_are_not_kept():
    def judged() -> weakref.ref[pd.DataFrame]:
        frame = pd.DataFrame({"id": [1, 2]})
        batch = pandas_batch(frame, "captured_files")
        judge("orders", batch, [("small", declare(BETWEEN, column="id", max_value=1))], ("id",))
        return weakref.ref(frame)

    frames = [judged() for _ in range(3)]
    gc.collect()
    assert [frame() for frame in frames] == [None] * 3


def test_people_can_read_what_was_found():
    lines = list(audited(replace(A, disorder=2), replace(B, rows_written=1)).to_lines())
    assert lines[2] == "critical offsets grow: disorder 2, path files/a (ids 100 to 102)"
    assert lines[6:] == [
        "met      no namespace outside the declaration",
        "warning  every offset has a record: width 2, path files/b, rows_written 1 (ids 103 to 104)",
    ]


def test_what_was_judged_survives_its_file():
    record = audited(replace(A, disorder=2), B, own=(declare(BETWEEN, "small", column="bytes", max_value=1),))
    assert AuditRecord.from_bytes(record.to_bytes()) == record


# The pipeline's own


@pytest.mark.parametrize(("severity", "passed"), [("critical", False), ("warning", True), ("info", True)])
def test_a_rule_of_the_pipeline_s_own_is_judged_with_its_severity(severity, passed):
    own = declare(BETWEEN, "keys are needed", severity, column="null_keys", max_value=0)
    record = audited(A, replace(B, null_keys=1), own=(own,))
    assert record.judgements[len(RULES) :] == (
        Judgement("keys are needed", BETWEEN, severity, False, "null_keys 1, path files/b", (103, 104)),
    )
    assert record.passed is passed


def test_a_rule_without_notes_has_its_type_for_a_title():
    record = audited(A, own=(declare(BETWEEN, column="null_keys", max_value=0),))
    assert record.judgements[-1] == Judgement(BETWEEN, BETWEEN, "critical", True, "")


def test_a_rule_about_the_whole_capture_names_what_was_found():
    own = declare("expect_column_sum_to_be_between", column="bytes", max_value=1)
    (failure,) = audited(A, B, own=(own,)).failures
    assert (failure.detail, failure.ids) == ("found 2000", None)


def test_a_suite_cannot_take_a_rule_away():
    own = declare(BETWEEN, "a little disorder is fine", "info", column="disorder", max_value=0)
    record = audited(replace(A, disorder=2), own=(own,))
    assert [j.title for j in record.failures] == ["offsets grow"]
    assert [j.title for j in record.warnings] == ["a little disorder is fine"]


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        pytest.param(
            declare("expect_column_value_to_be_between"),
            f"there is no such expectation (did you mean {BETWEEN}?)",
            id="mistyped",
        ),
        pytest.param(declare("nonsense"), "there is no such expectation", id="unknown"),
        pytest.param(
            declare(BETWEEN, column="bytes", max_value=1, maximum=1),
            "maximum: extra fields not permitted",
            id="unknown argument",
        ),
        pytest.param(declare(BETWEEN, max_value=1), "column: field required", id="missing argument"),
        pytest.param(
            declare(BETWEEN, column="byts", max_value=1),
            'Error: The column "byts" in BatchData does not exist',
            id="unknown column",
        ),
        pytest.param(
            declare(BETWEEN, column="bytes", min_value=2, max_value=1),
            "min_value cannot be greater than max_value",
            id="contradiction",
        ),
    ],
)
def test_an_expectation_that_cannot_be_judged_is_refused(own, problem):
    with pytest.raises(BadExpectation) as refused:
        audited(A, own=(own,))
    assert (refused.value.pipeline, refused.value.expectation) == ("orders", own.type)
    assert refused.value.problem == problem


# Messages

BINDING = given_binding(1_000, 100, ("orders", 0, 0, 3), ("orders", 1, 7, 200))
VALUES = {
    ("orders", 0): {0: b"a", 1: None, 2: b"\xff\x00" * 1_000},
    ("orders", 1): dict.fromkeys(range(7, 127), b"ab"),
}
"""Ids 100 to 102 and 103 to 222."""

Judge = Callable[..., list[Judgement]]


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The files of one capture."""
    folder = LogFolder("orders", str(tmp_path_factory.mktemp("log")))
    return [folder.at(file) for file in capture(folder, BINDING, VALUES).files]


@pytest.fixture(scope="module")
def judge_messages(spark: "SparkSession", messages: list[str]) -> Judge:
    """Judges that capture by the expectations given."""
    return lambda *own: audit_messages("orders", spark, messages, Suite(messages=own))


def test_every_message_is_judged_and_those_that_offend_are_named_by_id(judge_messages):
    found = judge_messages(
        declare(NOT_NULL, "no tombstones", "warning", column="value"),
        declare(NOT_NULL, "keys", column="key"),
        declare(BETWEEN, column="offset", min_value=2),
    )
    assert found == [
        Judgement("no tombstones", NOT_NULL, "warning", False, "id 101, value None", (101, 101)),
        Judgement("keys", NOT_NULL, "critical", True, ""),
        Judgement(BETWEEN, BETWEEN, "critical", False, "id 100, offset 0; id 101, offset 1", (100, 101)),
    ]


def test_the_engine_keeps_no_message(judge_messages, spark, messages):
    judge_messages(declare(NOT_NULL, column="key"), declare(BETWEEN, column="offset", min_value=2))
    assert read_parquet(spark, messages).storageLevel == StorageLevel.NONE


def test_more_messages_than_can_be_fetched_are_counted(judge_messages):
    (found,) = judge_messages(declare(BETWEEN, column="offset", max_value=6))
    assert found.detail.endswith("; and 115 more")
    assert found.ids is None


def test_a_long_value_is_not_repeated(judge_messages):
    (found,) = judge_messages(
        declare("expect_column_value_lengths_to_be_between", column="value", max_value=10)
    )
    assert found.detail.startswith(r"id 102, value b'\xff\x00")
    assert len(found.detail) < 100


def test_a_column_that_no_message_has_is_refused(judge_messages):
    with pytest.raises(BadExpectation, match='The column "valu" in BatchData does not exist'):
        judge_messages(declare(NOT_NULL, column="valu"))


def test_what_spark_says_is_told_in_one_line(judge_messages):
    with pytest.raises(BadExpectation, match="PatternSyntaxException") as refused:
        judge_messages(declare("expect_column_values_to_match_regex", column="topic", regex="("))
    assert "\n" not in str(refused.value)


def test_without_expectations_no_message_is_read():
    assert audit_messages("orders", None, ["nowhere"], Suite()) == []


def test_without_messages_there_is_nothing_to_judge():
    assert audit_messages("orders", None, [], Suite(messages=(declare(NOT_NULL, column="value"),))) == []


# What the documents say


@pytest.mark.parametrize(
    "text", re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/expectations.md").read_text(), re.DOTALL)
)
def test_the_examples_on_the_page_can_be_judged(judge_messages, tmp_path, text):
    (tmp_path / "page.yaml").write_text(text)
    suite = load_suite(tmp_path, "page")
    titles = [
        j.title for j in [*audited(A, own=suite.captured_files).judgements, *judge_messages(*suite.messages)]
    ]
    assert titles == [*RULES, *(one.notes for one in (*suite.captured_files, *suite.messages))]


def test_the_default_suite_warns_of_records_without_a_key():
    suite = load_suite(ROOT / "include" / "expectations", "default")
    record = audited(replace(A, null_keys=1), own=suite.captured_files)
    assert [(j.title, j.ids) for j in record.warnings] == [
        ("records without a key belong to no entity", (100, 102))
    ]
