"""The report of a verification: read by people, stored, and read back."""

import json

import pytest

from tidemark.outputs.model.evidence import ComparedSide, VerificationMode
from tidemark.verification.renditions.record import keep, read_last
from tidemark.verification.renditions.report import RenditionReport, RuleLine, SampleGroup

pytestmark = pytest.mark.unit

CAROL = RuleLine("missing rows where owner == carol", "carol is a test account", 1)
UNUSED = RuleLine("added rows", "new accounts", 0)
MISSING = SampleGroup("missing", (0,), ("id carol at 40: missing (owner carol, balance 7)",))
OTHER = SampleGroup("changed", (), ("id bob at 20: balance 50 → 49",))


def given_report(**changes):
    fields = {
        "pipeline": "orders",
        "writer": "accounts",
        "kind": "collection",
        "mode": VerificationMode.EXPLAINED,
        "t": 60,
        "at": 100,
        "candidate": ComparedSide(2, 9, (4,), {"rules": "d1"}),
        "active": ComparedSide(1, 9, (), {"rules": "d0"}),
        "looked_at": {"rows": 12},
        "changes": {"missing": 1, "changed": 1},
        "columns": {"balance": 1},
        "differences": 2,
        "explained": 1,
        "rules": (CAROL, UNUSED),
        "samples": (OTHER, MISSING),
        "only_acknowledged": {2: (4,)},
        "not_compared": {"partitions that Kafka compacts": 2},
        "seconds": 1.5,
    }
    return RenditionReport(**{**fields, **changes})


def test_a_report_is_read_from_top_to_bottom():
    assert list(given_report().to_lines()) == [
        "orders/accounts: rendition 2 compared with 1 (explained): 2 different (1 missing, 1 changed), "
        "1 explained; 12 rows; up to id 9",
        "  1 explained by missing rows where owner == carol (carol is a test account)",
        "  matched nothing: added rows (new accounts)",
        "  changed, not explained:",
        "    id bob at 20: balance 50 → 49",
        "  missing, explained (carol is a test account):",
        "    id carol at 40: missing (owner carol, balance 7)",
        "  acknowledged for rendition 2 only: id 4",
        "  not compared: 2 partitions that Kafka compacts",
        "1 of 2 differences not explained. Where they are meant, add `expect:` rules; where not, mend the "
        "transform and build the next rendition.",
    ]


def test_a_clean_report_says_that_both_are_the_same():
    same = {"changes": {}, "columns": {}, "differences": 0, "explained": 0, "rules": (), "samples": ()}
    report = given_report(**same, only_acknowledged={}, not_compared={}, mode=VerificationMode.EXACT)
    (line,) = report.to_lines()
    assert line == "orders/accounts: rendition 2 compared with 1 (exact): the same; 12 rows; up to id 9"


def test_an_exact_report_with_differences_names_the_other_mode():
    report = given_report(mode=VerificationMode.EXACT, explained=0, rules=())
    assert not report.is_clean
    assert report.way.endswith("tidemark renditions verify orders accounts 2 --mode explained")


@pytest.mark.parametrize(
    ("at_most", "said"),
    [(None, ""), (1, ""), (0, ", 1 too many")],
)
def test_a_rule_says_how_many_rows_are_too_many(at_most, said):
    rule = RuleLine("missing rows", "why", 1, at_most)
    assert rule.said == f"1 explained by missing rows (why){said}"


def test_the_evidence_has_what_a_handover_needs():
    evidence = given_report(explained=2).evidence()
    assert (evidence.is_clean, evidence.t, evidence.candidate.number, evidence.active.position) == (
        True,
        60,
        2,
        9,
    )
    assert (evidence.differences, evidence.explained) == (2, 2)


def test_a_report_is_read_back_as_it_was():
    report = given_report()
    assert RenditionReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_the_newest_report_of_a_rendition_is_kept_beside_the_log(tmp_path):
    root = str(tmp_path)
    assert read_last("orders", root, "accounts", 2) is None
    for at in (99, 100, 98):
        keep(root, given_report(at=at))
    found = read_last("orders", root, "accounts", 2)
    assert found is not None
    assert found.at == 100
    assert read_last("orders", root, "accounts", 3) is None
