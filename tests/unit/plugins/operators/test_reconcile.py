"""The reconcile task: every record is logged, a difference fails, the link leads to the worst record."""

from types import SimpleNamespace

import pytest
from tests.support.airflow_context import given_context

from tidemark.log.model.audit_result import Judgement
from tidemark.verification import reconciliation
from tidemark.verification.reconciliation import Reconciliation

pytestmark = pytest.mark.unit


@pytest.fixture
def operator(monkeypatch, tmp_path):
    from tidemark.pipeline import loader
    from tidemark_airflow.operators.reconcile import ReconcileOperator

    declared = SimpleNamespace(log=SimpleNamespace(path=str(tmp_path)))
    monkeypatch.setattr(loader, "find_pipeline", lambda name: declared)
    return ReconcileOperator(task_id="reconcile", pipeline="orders")


def delivered(root, **passed):
    """What ``deliver`` returned, for writers whose comparison passed or did not."""
    writers = {}
    for name, good in passed.items():
        judgement = Judgement("the same", "equal", "critical", good, "" if good else "two rows differ")
        reconciliation.keep(str(root), Reconciliation("orders", name, 7, "compared", {}, (judgement,)))
        writers[name] = {"reconciled": {"position": 7, "passed": good}}
    return given_context(results={"deliver": {"writers": writers}})


def test_a_run_without_a_comparison_is_skipped(operator):
    from airflow.sdk.exceptions import AirflowSkipException

    for result in (None, {"writers": {"journal": {"reconciled": None}}}):
        with pytest.raises(AirflowSkipException, match="nothing was delivered that is compared"):
            operator.execute(given_context(results={"deliver": result}))


def test_what_passed_is_returned(operator, tmp_path):
    found = operator.execute(delivered(tmp_path, journal=True))
    assert (found, operator.place) == ({"journal": {"position": 7, "passed": True}}, "journal/7")


def test_a_difference_fails_and_is_what_the_link_leads_to(operator, tmp_path, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    from tidemark_airflow.operators import reconcile

    with pytest.raises(AirflowFailException, match=r"orders/stream: .*two rows differ.*The gate is closed"):
        operator.execute(delivered(tmp_path, journal=True, stream=False))
    monkeypatch.setattr(reconcile.conf, "get", lambda *given, **fallback: "http://host/")
    link = reconcile.ReconcileLink().get_link(operator, ti_key=None)
    assert link == "http://host/tidemark/reconciliations/orders/stream/7"


def test_before_it_has_run_there_is_no_link(operator):
    from tidemark_airflow.operators.reconcile import ReconcileLink

    assert ReconcileLink().get_link(operator, ti_key=None) == ""
