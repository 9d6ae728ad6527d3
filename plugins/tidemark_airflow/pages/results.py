"""Pages with the results of audits, reconciliations and comparisons of renditions.

Every route requires a user who may see plugins.
"""

from pathlib import Path

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

from tidemark.errors import TidemarkError
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import Pipeline

_templates = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True)
# A mounted application has no authentication of its own, so every route asks for it. FastAPI's built-in
# routes (the schema and two pages that show it) cannot, so they are switched off.
pages = FastAPI(title="Tidemark", openapi_url=None, docs_url=None, redoc_url=None)
_may_look = Depends(requires_access_view(AccessView.PLUGINS))


@pages.get("/audits/{pipeline}/{t}", response_class=HTMLResponse, dependencies=[_may_look])
def show_audit(pipeline: str, t: int) -> str:
    """The findings of the audit of one capture."""
    from tidemark.log.files.parquet import LogFolder

    declared = _declared(pipeline)
    record = LogFolder(pipeline, declared.log.path).read_audit(t)
    if record is None:
        raise HTTPException(404, f"{pipeline}: the binding at {t} has no audit yet.")
    return _templates.get_template("audit.html").render(pipeline=pipeline, record=record)


@pages.get(
    "/reconciliations/{pipeline}/{writer}/{position}", response_class=HTMLResponse, dependencies=[_may_look]
)
def show_reconciliation(pipeline: str, writer: str, position: int) -> str:
    """The findings of one comparison of a writer's output with the log."""
    from tidemark.verification.reconciliation import read

    declared = _declared(pipeline)
    if writer not in {one.name for one in declared.writers}:
        raise HTTPException(404, f"{pipeline} has no writer {writer}.")
    record = read(pipeline, declared.log.path, writer, position)
    if record is None:
        raise HTTPException(404, f"{pipeline}/{writer} has no reconciliation at id {position}.")
    return _templates.get_template("reconciliation.html").render(record=record)


@pages.get("/renditions/{pipeline}/{writer}/{number}", response_class=HTMLResponse, dependencies=[_may_look])
def show_rendition(pipeline: str, writer: str, number: int) -> str:
    """The newest comparison of a rendition with the one that readers used then."""
    from tidemark.verification.renditions.record import read_last

    declared = _declared(pipeline)
    if writer not in {one.name for one in declared.writers}:
        raise HTTPException(404, f"{pipeline} has no writer {writer}.")
    report = read_last(pipeline, declared.log.path, writer, number)
    if report is None:
        raise HTTPException(404, f"{pipeline}/{writer}: rendition {number} was never compared.")
    return _templates.get_template("rendition.html").render(report=report, record={"passed": report.is_clean})


def _declared(pipeline: str) -> Pipeline:
    """The pipeline, or 404: names come from the URL."""
    try:
        return find_pipeline(pipeline)
    except TidemarkError as error:
        raise HTTPException(404, str(error)) from None
