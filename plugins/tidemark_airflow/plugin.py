"""What Airflow's web server gets from Tidemark: pages that only people who may see plugins can open.

On SQLite also an order for requests that change something.
"""

from pathlib import Path
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

from tidemark.errors import TidemarkError
from tidemark.pipeline.loader import find_pipeline
from tidemark_airflow.audit import PAGES
from tidemark_airflow.changes_in_turn import ChangesInTurn, needed
from tidemark_airflow.say_why import SayWhy

_templates = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True)
# A mounted application has no authentication of its own: every route asks for it. FastAPI's own three (the
# schema and two pages that show it) could not, so there are none.
pages = FastAPI(title="Tidemark", openapi_url=None, docs_url=None, redoc_url=None)
_may_look = Depends(requires_access_view(AccessView.PLUGINS))


@pages.get("/audits/{pipeline}/{t}", response_class=HTMLResponse, dependencies=[_may_look])
def show_audit(pipeline: str, t: int) -> str:
    """What the audit of one capture found."""
    from tidemark.log.files.parquet import LogFolder

    try:
        declared = find_pipeline(pipeline)
    except TidemarkError as error:
        raise HTTPException(404, str(error)) from None
    record = LogFolder(pipeline, declared.log.path).read_audit(t)
    if record is None:
        raise HTTPException(404, f"{pipeline}: the binding at {t} has no audit yet.")
    return _templates.get_template("audit.html").render(pipeline=pipeline, record=record)


@pages.get(
    "/reconciliations/{pipeline}/{writer}/{position}", response_class=HTMLResponse, dependencies=[_may_look]
)
def show_reconciliation(pipeline: str, writer: str, position: int) -> str:
    """What one comparison of a journal with the log found."""
    from tidemark.verification.reconciliation import read

    try:
        declared = find_pipeline(pipeline)
    except TidemarkError as error:
        raise HTTPException(404, str(error)) from None
    if writer not in {one.name for one in declared.writers}:
        raise HTTPException(404, f"{pipeline} has no writer {writer}.")
    record = read(pipeline, declared.log.path, writer, position)
    if record is None:
        raise HTTPException(404, f"{pipeline}/{writer} has no reconciliation at id {position}.")
    return _templates.get_template("reconciliation.html").render(record=record)


class TidemarkPlugin(AirflowPlugin):
    """Registers the pages and the order."""

    name = "tidemark"
    fastapi_apps: list[Any] = [{"app": pages, "url_prefix": PAGES, "name": "Tidemark"}]  # noqa: RUF012
    fastapi_root_middlewares: list[Any] = [  # noqa: RUF012
        {"middleware": SayWhy, "name": "Say why"},
        *(
            [{"middleware": ChangesInTurn, "name": "Changes in turn"}]
            if needed(conf.get("database", "sql_alchemy_conn"))
            else []
        ),
    ]
