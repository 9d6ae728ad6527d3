"""Plans and reports of synchronisations, as people read them."""

import pytest
from tests.support.operation_topic import operation

from tidemark.oplog.sync.decisions import Outcome
from tidemark.oplog.sync.report import (
    SAID,
    correction_line,
    plan_document,
    plan_lines,
    report_document,
    report_line,
)
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary, SentSummary
from tidemark.oplog.sync.verify import Verified

pytestmark = pytest.mark.unit

DUMP = DumpSummary("key", "dump.jsonl", 12_000, 1_200, False)
DIFF = DiffSummary(
    "key",
    7,
    "oplog",
    "id",
    {0: 0},
    {"insert": 2, "delete": 1, "same": 1_198},
    1_199,
    first=("insert video/x",),
)
NOTHING = DiffSummary("key", 7, "oplog", "id", {0: 0}, {"same": 1_200}, 1_200)


def test_S20_a_plan_counts_every_outcome_and_names_the_first_corrections():
    assert list(plan_lines("events", DUMP, DIFF)) == [
        "events: dump.jsonl of 1970-01-01T00:00:12.000Z with 1,200 lines, compared with 1,199 objects at 7: "
        "3 corrections",
        "             2  in the dump only: insert",
        "             1  not in the dump: delete",
        "         1,198  the same",
        "  insert video/x",
        "  … and 2 more",
    ]


def test_S20_a_plan_is_the_same_in_json():
    found = plan_document("events", DUMP, DIFF)
    assert (found["corrections"], found["deletes"], found["objects"]) == (3, 1, 1_199)


def test_every_outcome_has_words():
    assert set(SAID) == set(Outcome)


def test_a_correction_is_one_line():
    line = correction_line(operation("x", "delete", 11), Outcome.DELETE)
    assert line == "delete video/x  1970-01-01T00:00:11.000Z  not in the dump"


def test_a_report_says_what_was_sent_and_verified():
    sent = SentSummary(2, 1, 0, {0: 9}, "file")
    report = report_document("events", DUMP, DIFF, sent, Verified(as_sent=2, changed_since=1))
    assert report_line(report) == (
        "events: 2 corrections sent, 1 objects left alone because they had changed since; 2 are as they were "
        "corrected, 1 were changed by later operations"
    )


def test_S12_a_report_says_that_nothing_differs():
    report = report_document("events", DUMP, NOTHING, None, None)
    assert report_line(report) == "events: the dump and the objects agree; nothing was sent"
