"""The audit task: its findings, and the link to their page."""

from types import SimpleNamespace

import pytest

from tidemark.errors import TidemarkError
from tidemark.log.model.audit_result import AuditRecord, Judgement

pytestmark = pytest.mark.unit


class Critical(TidemarkError):
    needs_person = True


@pytest.fixture
def audit(monkeypatch):
    """Runs the task over a record, or an error."""
    from tidemark.app import replicate
    from tidemark.pipeline import loader
    from tidemark_airflow.operators import audit

    monkeypatch.setattr(loader, "find_pipeline", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(audit, "pipeline_connections", lambda declared: None)

    def run(found):
        def audit_run(pipeline, connections, t, show):
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(replicate, "audit_run", audit_run)
        return audit.AuditOperator(task_id="audit", pipeline="orders", t="7").execute({})

    return run


def judged(severity: str, success: bool) -> Judgement:
    return Judgement("keys are set", "not_null", severity, success, "")


def test_findings_are_counted_by_severity(audit):
    record = AuditRecord(7, "c", (judged("warning", False), judged("critical", True)))
    assert audit(record) == {"t": 7, "passed": True, "failures": 0, "warnings": 1}


def test_a_critical_finding_fails_without_retries(audit):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="3 keys are missing"):
        audit(Critical("3 keys are missing"))


def test_the_link_leads_to_the_page_of_the_run(monkeypatch):
    from tidemark_airflow.operators import audit

    monkeypatch.setattr(audit.conf, "get", lambda *given, **fallback: "http://host:8080/")
    operator = SimpleNamespace(pipeline="orders", t=7)
    assert audit.AuditLink().get_link(operator, ti_key=None) == "http://host:8080/tidemark/audits/orders/7"
