"""The differences that a new rendition is meant to have, as a file declares them, and every refusal."""

from decimal import Decimal

import pytest
from pydantic import ValidationError
from tests.support.pipeline_files import ARCHIVE, JOURNAL, check

from tidemark.pipeline.expect import Condition, Expectation, RowChange, parse_conditions
from tidemark.pipeline.files.refusals import explain

pytestmark = pytest.mark.unit


def refused(**keys):
    """The text of what is wrong with a rule."""
    with pytest.raises(ValidationError) as refusal:
        Expectation.model_validate({"reason": "meant", **keys})
    (finding,) = explain(refusal.value, Expectation)
    return finding.text


def test_a_rule_is_about_changed_rows_unless_it_says_otherwise():
    rule = Expectation.model_validate({"column": "owner", "reason": " names are trimmed "})
    assert (rule.rows, rule.column, rule.at_most, rule.conditions) == (RowChange.CHANGED, "owner", None, ())
    assert (rule.reason, rule.told) == ("names are trimmed", "changed `owner`")


def test_a_rule_tells_what_it_expects():
    keys = {"rows": "missing", "where": "owner == carol", "at_most": 10, "reason": "a test account"}
    rule = Expectation.model_validate(keys)
    assert rule.told == "missing rows where owner == carol, at most 10"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("owner == carol", [Condition("owner", None, "==", "carol")]),
        ("old.balance>10.50", [Condition("balance", True, ">", Decimal("10.50"))]),
        ("new.balance <= -1", [Condition("balance", False, "<=", -1)]),
        ('owner =~ "^te st"', [Condition("owner", None, "=~", "^te st")]),
        ("owner == 'a and b'", [Condition("owner", None, "==", "a and b")]),
        ("value.owner == null", [Condition("value.owner", None, "==", None)]),
        ("a == true and b == 2", [Condition("a", None, "==", True), Condition("b", None, "==", 2)]),
        ("owner =~ 12", [Condition("owner", None, "=~", "12")]),
        ("a == band", [Condition("a", None, "==", "band")]),
    ],
)
def test_conditions_are_read(text, found):
    assert list(parse_conditions(text)) == found


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("owner", "is no condition"),
        ("owner == ann b == 2", "is no condition"),
        ("owner == carol and", "ends after `and`"),
        ("owner != carol", "is no condition"),
        ("", "is no condition"),
        ("balance > much", "needs a number"),
        ("owner =~ (", "not a regular expression"),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused(where, said):
    assert said in refused(where=where, rows="missing")


def test_a_column_goes_with_changed_rows_only():
    assert "`rows: changed` only" in refused(rows="missing", column="owner")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"reason": "  "}, "is empty"),
        ({"at_most": -1}, "at least 0"),
        ({"rows": "gone"}, "gone"),
        ({"columns": "owner"}, "columns"),
    ],
)
def test_a_rule_with_other_values_is_refused(keys, said):
    assert said in refused(**keys)


def test_a_rule_needs_a_reason():
    with pytest.raises(ValidationError) as refusal:
        Expectation.model_validate({"rows": "missing"})
    (finding,) = explain(refusal.value, Expectation)
    assert finding.place == ("reason",)


@pytest.mark.parametrize("head", [JOURNAL, ARCHIVE])
def test_a_rule_in_a_file_is_refused_on_its_line(tmp_path, head):
    path = "    path: /data/archive\n" if head is ARCHIVE else ""
    rules = "    expect:\n      - {rows: missing, where: test == true, reason: test messages}\n"
    line = head.count("\n") + bool(path) + 3
    check(tmp_path, head + path + rules + "      - {where: b, reason: c}\n", line, "is no condition")
