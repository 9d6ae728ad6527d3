"""Airflow: four components over SQLite with the local executor, each in a session of its own.

Not ``airflow standalone``, which leaves about forty processes behind when it is stopped by a signal.
"""

import base64
import json
import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tidemark.embedded.errors import ServiceDied
from tidemark.embedded.files import write_atomically
from tidemark.embedded.home import OWNER_ONLY
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.airflow_environment import airflow_environment
from tidemark.embedded.services.service import Program, Service
from tidemark.embedded.state import State
from tidemark.settings import Settings

INTERNAL_PORTS = ("airflow.worker_log", "airflow.trigger_log")
COMPONENTS = {
    "api-server": "Airflow's API server",
    "scheduler": "Airflow's scheduler",
    "dag-processor": "Airflow's DAG processor",
    "triggerer": "Airflow's triggerer",
}
_REPORTED = {"scheduler": "scheduler", "dag_processor": "dag processor", "triggerer": "triggerer"}


def airflow_service(settings: Settings, state: State) -> Service:
    """Airflow of this home, ready to be started."""
    environ = {**os.environ, **airflow_environment(settings, state)}
    port = settings.airflow_port
    ports = {
        "api-server": port,
        "scheduler": state.ports["airflow.worker_log"],
        "triggerer": state.ports["airflow.trigger_log"],
    }

    def prepare() -> None:
        write_secrets(settings)
        _migrate(settings, environ)

    programs = tuple(
        Program(
            name=f"airflow-{component}",
            title=title,
            command=(sys.executable, "-m", "airflow", component),
            environ=environ,
            cwd=settings.root,
            port=ports.get(component),
            variable="TIDEMARK_AIRFLOW_PORT" if component == "api-server" else None,
        )
        for component, title in COMPONENTS.items()
    )
    return Service(
        name="airflow",
        title="Airflow",
        programs=programs,
        prepare=prepare,
        question=lambda since: ask_airflow(port, since),
        deadline=180.0,
        address=f"http://{LOOPBACK}:{port}",
    )


def passwords_file(settings: Settings) -> Path:
    """The file of Airflow's users and passwords: a JSON object, written at the first start."""
    return settings.home / "airflow" / "simple_auth_manager_passwords.json.generated"


def write_secrets(settings: Settings) -> None:
    """Create the components' shared keys and the password of ``admin``, once per home, mode 0600."""
    home = settings.home / "airflow"
    home.mkdir(parents=True, exist_ok=True)
    keep_private(settings)
    config = home / "airflow.cfg"
    if not config.exists():
        fernet = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        text = (
            "# Only secrets: all else is set by variables, see embedded/services/airflow_environment.py.\n"
            f"[core]\nfernet_key = {fernet}\n"
            f"[api]\nsecret_key = {secrets.token_hex(32)}\n"
            f"[api_auth]\njwt_secret = {secrets.token_hex(64)}\n"
        )
        write_atomically(config, text, mode=0o600)
    if not passwords_file(settings).exists():
        content = json.dumps({"admin": secrets.token_urlsafe(12)})
        write_atomically(passwords_file(settings), content + "\n", mode=0o600)


def keep_private(settings: Settings) -> None:
    """Restrict Airflow's folder, database, keys and passwords to their owner."""
    home = settings.home / "airflow"
    home.chmod(OWNER_ONLY)
    # SQLite creates its other files with the permissions of the database.
    for secret in (*home.glob("airflow.db*"), home / "airflow.cfg", passwords_file(settings)):
        if secret.is_file():
            secret.chmod(0o600)


def ask_airflow(port: int, since: float) -> str | None:
    """Request the health of all components; None when all have reported since ``since``, else the problem."""
    try:
        # The part of the API that tasks use. It is built at its first request, in seconds: not at a task's.
        _read_json(port, "/execution/health")
        health = _read_json(port, "/api/v2/monitor/health")
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    if health["metadatabase"]["status"] != "healthy":
        return "the database is not healthy"
    for key, name in _REPORTED.items():
        report = health.get(key) or {}
        heartbeat = report.get(f"latest_{key}_heartbeat")
        if report.get("status") != "healthy" or not heartbeat:
            return f"the {name} is not healthy"
        if datetime.fromisoformat(heartbeat).timestamp() < since:
            return f"the {name} has not reported since it was started"
    return None


def _read_json(port: int, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _migrate(settings: Settings, environ: dict[str, str]) -> None:
    """Create or migrate the database; a file records the version that did it last."""
    home = settings.home / "airflow"
    done, current = home / ".migrated", version("apache-airflow-core")
    if (home / "airflow.db").exists() and done.exists() and done.read_text().strip() == current:
        return
    log = settings.home / "logs" / "airflow-migrate.log"
    with log.open("ab") as output:
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        code = subprocess.call(
            command, env=environ, cwd=settings.root, stdout=output, stderr=output, umask=0o077
        )
    if code != 0:
        raise ServiceDied("`airflow db migrate`", log, log.read_text(errors="replace").splitlines()[-15:])
    keep_private(settings)
    write_atomically(done, current + "\n")
