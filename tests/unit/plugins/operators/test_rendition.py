"""The report of a comparison in a run: logged, a failure where it is not clean, and shown to a person."""

from typing import Any

import pytest
from tests.support.airflow_context import given_context

pytestmark = pytest.mark.unit

REPORT = {
    "pipeline": "bank",
    "writer": "archive",
    "candidate": {"number": 2},
    "active": {"number": 1},
    "clean": True,
    "summary": "rendition 2 compared with 1 (exact): the same",
    "way": "",
    "lines": [f"line {number}" for number in range(70)],
}


@pytest.fixture
def report(monkeypatch) -> dict[str, Any]:
    """What the application returns."""
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    found = dict(REPORT)
    monkeypatch.setattr(SparkAppOperator, "execute", lambda self, context: found)
    return found


def verify() -> Any:
    from tidemark_airflow.operators.rendition import VerifyRenditionOperator

    return VerifyRenditionOperator(task_id="verify", pipeline="bank", app="verify_rendition")


def test_a_clean_report_is_returned_and_linked(report):
    task = verify()
    found = task.execute(given_context())
    assert (task.place, len(found["lines"])) == ("archive/2", 60)
    (link,) = task.operator_extra_links
    assert link.get_link(task, ti_key=None).endswith("/renditions/bank/archive/2")


def test_differences_that_are_not_explained_fail_and_are_linked_too(report):
    from airflow.sdk.exceptions import AirflowFailException

    report |= {
        "clean": False,
        "summary": "4 different, 3 explained",
        "way": "1 differences are not explained.",
    }
    task = verify()
    with pytest.raises(AirflowFailException, match=r"bank/archive: 4 different, 3 explained\. 1 differences"):
        task.execute(given_context())
    assert task.place == "archive/2"


def test_a_person_is_shown_the_report_and_what_a_rejection_means():
    from tidemark_airflow.operators.rendition import question

    subject, body = question(REPORT, "http://airflow/renditions/bank/archive/2")
    assert subject == "bank/archive: readers are to take rendition 2 instead of 1"
    assert "[The whole report](http://airflow/renditions/bank/archive/2)" in body
    assert "line 3" in body
    assert "abandoned only by: tidemark renditions abandon bank archive 2" in body


@pytest.mark.parametrize(("given", "soak"), [("48h", "48h"), (None, "")])
def test_a_handover_is_told_who_approved_it_and_why_and_how_long_readers_can_return(report, given, soak):
    from tidemark_airflow.operators.rendition import HandOverOperator

    task = HandOverOperator(task_id="hand_over", pipeline="bank", app="verify_rendition")
    answer = {"chosen_options": ["Approve"], "responded_by_user": {"name": "eve"}}
    task.execute(given_context(results={"approve": answer}, reason="the sums were wrong", soak=given))
    assert task.application_args[-7:] == [
        "--hand-over",
        "--who",
        "eve (orders.dag)",
        "--reason",
        "the sums were wrong",
        "--soak",
        soak,
    ]
