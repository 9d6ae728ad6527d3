"""Registers Tidemark with Airflow's API server: the result pages and the middlewares."""

from typing import Any

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from tidemark_airflow.operators.audit import PAGES
from tidemark_airflow.pages.require_reason import RequireReason
from tidemark_airflow.pages.results import pages
from tidemark_airflow.pages.serialize_writes import SerializeWrites, is_needed


class TidemarkPlugin(AirflowPlugin):
    """What Airflow loads. ``SerializeWrites`` only where the database is SQLite."""

    name = "tidemark"
    fastapi_apps: list[Any] = [{"app": pages, "url_prefix": PAGES, "name": "Tidemark"}]  # noqa: RUF012
    fastapi_root_middlewares: list[Any] = [  # noqa: RUF012
        {"middleware": RequireReason, "name": "Require a reason"},
        *(
            [{"middleware": SerializeWrites, "name": "Serialize writes"}]
            if is_needed(conf.get("database", "sql_alchemy_conn"))
            else []
        ),
    ]
