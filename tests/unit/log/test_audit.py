"""The record of an audit: what forbids publishing, what only warns, and that it survives its file.

What Great Expectations itself judges is in tests/spark/test_audit.py.
"""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tidemark.errors import TidemarkError
from tidemark.log.audit import BadExpectation
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord, Judgement

pytestmark = pytest.mark.unit

BETWEEN = "expect_column_values_to_be_between"
EQUAL = "expect_column_pair_values_to_be_equal"
MET = Judgement("offsets grow", BETWEEN, "critical", success=True, detail="")
FAILED = Judgement("ids are unique", BETWEEN, "critical", False, "gap_before 0, path files/b", (103, 104))
WARNED = Judgement("every offset has a record", EQUAL, "warning", False, "path files/a", (100, 102))
INFORMED = Judgement("few files", "expect_table_row_count_to_be_between", "info", False, "found 7")


def given_record(*judgements: Judgement) -> AuditRecord:
    return AuditRecord(1_000, "captured-digest", judgements)


@pytest.mark.parametrize(
    ("judgements", "passed"),
    [
        pytest.param([], True, id="nothing judged"),
        pytest.param([MET], True, id="everything met"),
        pytest.param([MET, WARNED, INFORMED], True, id="warnings"),
        pytest.param([MET, FAILED], False, id="something critical"),
        pytest.param([FAILED, WARNED], False, id="critical and a warning"),
    ],
)
def test_only_what_is_critical_forbids_publishing(judgements, passed):
    assert given_record(*judgements).passed is passed


def test_failures_are_what_is_critical_and_not_met():
    assert list(given_record(MET, WARNED, FAILED, INFORMED).failures) == [FAILED]


def test_warnings_are_everything_else_that_is_not_met():
    assert list(given_record(MET, WARNED, FAILED, INFORMED).warnings) == [WARNED, INFORMED]


def test_a_warning_that_is_met_is_none():
    assert list(given_record(replace(WARNED, success=True)).warnings) == []


def test_people_read_what_was_found_and_where():
    assert list(given_record(MET, FAILED, WARNED, INFORMED).to_lines()) == [
        "met      offsets grow",
        "critical ids are unique: gap_before 0, path files/b (ids 103 to 104)",
        "warning  every offset has a record: path files/a (ids 100 to 102)",
        "info     few files: found 7",
    ]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(given_record(), id="nothing judged"),
        pytest.param(given_record(MET, FAILED, WARNED, INFORMED), id="everything"),
        pytest.param(given_record(replace(FAILED, ids=(0, 0))), id="the first id of all"),
        pytest.param(given_record(replace(FAILED, title="ключ ≠ 0", detail='"{}"\n')), id="any text"),
    ],
)
def test_a_record_survives_its_file(record):
    assert AuditRecord.from_bytes(record.to_bytes()) == record


def test_the_same_findings_are_the_same_bytes():
    assert given_record(MET, FAILED).to_bytes() == given_record(replace(MET), replace(FAILED)).to_bytes()


def test_the_file_says_whether_the_audit_was_passed():
    assert json.loads(given_record(FAILED).to_bytes())["passed"] is False


def test_what_the_file_says_about_passing_is_not_believed():
    claimed = given_record(FAILED).to_bytes().replace(b'"passed": false', b'"passed": true')
    assert not AuditRecord.from_bytes(claimed).passed


def test_a_record_lies_in_the_log_s_folder_by_its_binding(tmp_path):
    LogFolder("orders", str(tmp_path)).write_audit(given_record(MET))
    assert [path.name for path in (tmp_path / "audits").iterdir()] == ["00000000000000001000.json"]


def test_a_later_audit_takes_the_place_of_the_earlier_one(tmp_path):
    folder = LogFolder("orders", str(tmp_path))
    folder.write_audit(given_record(FAILED))
    folder.write_audit(given_record(MET))
    assert folder.read_audit(1_000) == given_record(MET)


def test_a_binding_that_was_not_audited_has_no_record(tmp_path):
    assert LogFolder("orders", str(tmp_path)).read_audit(1_000) is None


def test_a_bad_expectation_says_what_did_not_happen_and_what_to_do():
    error = BadExpectation("orders", "expect_x", 'The column "x" does not exist.')
    assert str(error) == (
        'orders: expect_x in the pipeline\'s suite cannot be judged: The column "x" does not exist. '
        "Nothing was let pass; correct the suite in include/expectations and clear the task that says so."
    )
    assert (error.pipeline, error.expectation) == ("orders", "expect_x")


def test_only_a_person_can_put_a_bad_expectation_right():
    assert issubclass(BadExpectation, TidemarkError)
    assert BadExpectation.needs_person


def test_a_bad_expectation_does_not_repeat_a_whole_stack():
    assert len(str(BadExpectation("orders", "expect_x", "at java " * 1_000))) < 700


def test_great_expectations_is_not_loaded_before_it_is_needed():
    script = "import sys, tidemark.log.audit, tidemark.log.files.parquet; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert not {"great_expectations", "pandas", "pyspark"} & set(run.stdout.split())
