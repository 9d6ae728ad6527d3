"""Tidemark's pages in Airflow's web server: nothing answers without a log-in (item 26)."""

from typing import Any

import pytest
from fastapi.routing import APIRoute

from tidemark.errors import TidemarkError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord, Judgement
from tidemark.outputs.model.evidence import ComparedSide, VerificationMode
from tidemark.verification import reconciliation
from tidemark.verification.reconciliation import Reconciliation
from tidemark.verification.renditions.record import keep
from tidemark.verification.renditions.report import RenditionReport, RuleLine, SampleGroup

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported


@pytest.fixture(scope="module")
def results() -> Any:
    from tidemark_airflow.pages import results

    return results


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"])
def test_i26_the_schema_and_the_pages_that_show_it_are_not_there(results, path):
    from fastapi.testclient import TestClient  # warns

    assert TestClient(results.pages).get(path).status_code == 404


def test_i26_every_route_asks_who_is_there(results):
    asking = [route for route in results.pages.routes if isinstance(route, APIRoute)]
    assert len(asking) == len(results.pages.routes) > 0
    assert [route.path for route in asking if results._may_look not in route.dependencies] == []


# What a user sees


def ask(results: Any, path: str) -> tuple[int, str]:
    """Ask for a page as a user who may see plugins."""
    from fastapi.testclient import TestClient  # warns

    results.pages.dependency_overrides = {results._may_look.dependency: lambda: None}
    try:
        answer = TestClient(results.pages).get(path)
    finally:
        results.pages.dependency_overrides = {}
    return answer.status_code, answer.text


@pytest.fixture
def declared(results: Any, house: Any, opened: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def find(name: str) -> Any:
        if name != "orders":
            raise TidemarkError(f"There is no pipeline {name}.")
        return opened.pipeline

    monkeypatch.setattr(results, "find_pipeline", find)
    return opened.pipeline


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/audits/odrers/7", "There is no pipeline odrers."),
        ("/audits/orders/7", "orders: the binding at 7 has no audit yet."),
        ("/reconciliations/odrers/stream/7", "There is no pipeline odrers."),
        ("/reconciliations/orders/straem/7", "orders has no writer straem."),
        ("/reconciliations/orders/stream/7", "orders/stream has no reconciliation at id 7."),
        ("/renditions/odrers/stream/2", "There is no pipeline odrers."),
        ("/renditions/orders/straem/2", "orders has no writer straem."),
        ("/renditions/orders/stream/2", "orders/stream: rendition 2 was never compared."),
    ],
)
def test_what_is_not_there_is_a_404_with_a_reason(results: Any, declared: Any, path: str, said: str) -> None:
    status, text = ask(results, path)
    assert (status, said in text) == (404, True)


def test_the_page_of_an_audit_shows_every_judgement(results: Any, declared: Any) -> None:
    judgement = Judgement("keys are <set>", "not_null", "critical", False, "3 are not", (4, 9))
    LogFolder("orders", declared.log.path).write_audit(AuditRecord(7, "c" * 64, (judgement,)))
    status, text = ask(results, "/audits/orders/7")
    assert (status, "keys are &lt;set&gt;" in text, "4 to 9" in text) == (200, True, True)
    assert "Failed: nothing was published" in text


def test_the_page_of_a_reconciliation_shows_every_difference(results: Any, declared: Any) -> None:
    found = {"total": 1, "differences": [{"kind": "missing", "said": "part 3"}], "not_provable": {"late": 2}}
    record = Reconciliation("orders", "stream", 7, "one differs", found)
    reconciliation.keep(declared.log.path, record)
    status, text = ask(results, "/reconciliations/orders/stream/7")
    assert (status, "part 3" in text, "one differs" in text) == (200, True, True)


def test_the_page_of_a_rendition_shows_counts_rules_and_samples(results: Any, declared: Any) -> None:
    sides = ComparedSide(2, 9), ComparedSide(1, 9)
    sample = SampleGroup("missing", (), ("id 3: missing (sum <1>)",))
    report = RenditionReport(
        *("orders", "stream", "files", VerificationMode.EXPLAINED, 7, 8, *sides),
        looked_at={"messages": 10},
        changes={"missing": 4},
        columns={"sum": 2},
        differences=4,
        explained=3,
        rules=(RuleLine("missing rows", "a test account", 3),),
        samples=(sample,),
        only_acknowledged={},
        not_compared={"messages without a value": 5},
        seconds=1.0,
    )
    keep(declared.log.path, report)
    status, text = ask(results, "/renditions/orders/stream/2")
    assert (status, "Differences are not explained." in text) == (200, True)
    for said in ("id 3: missing (sum &lt;1&gt;)", "a test account", "in column sum", "without a value"):
        assert said in text
