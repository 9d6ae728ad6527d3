"""A small client for Airflow's REST API: trigger a run, follow it, and read the logs and XComs of its tasks.

It talks to the embedded Airflow of one home only, as its admin.
"""

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Self

import httpx

from tidemark.embedded.errors import AirflowRefused
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.airflow import passwords_file
from tidemark.settings import Settings


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task of a run; ``state`` is None until the scheduler sets it."""

    task_id: str
    state: str | None


class _Login(httpx.Auth):
    """Requests a token before the first request, so that an unused client needs no running Airflow."""

    requires_response_body = True

    def __init__(self, settings: Settings, base: str) -> None:
        self._settings, self._base = settings, base
        self._token: str | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See ``httpx.Auth.auth_flow``."""
        if self._token is None:
            password = json.loads(passwords_file(self._settings).read_text())["admin"]
            credentials = {"username": "admin", "password": password}
            answer = yield httpx.Request("POST", f"{self._base}/auth/token", json=credentials)
            self._token = str(_checked(answer, "log in").json()["access_token"])
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class AirflowApi:
    """The REST API of this home's Airflow."""

    def __init__(self, settings: Settings) -> None:
        base = f"http://{LOOPBACK}:{settings.airflow_port}"
        self._client = httpx.Client(base_url=f"{base}/api/v2", auth=_Login(settings, base), timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def request(self, method: str, path: str, what: str, **arguments: Any) -> Any:
        """Any request; returns the JSON of the response."""
        return _checked(self._client.request(method, path, **arguments), what).json()

    def has_dag(self, dag_id: str) -> bool:
        """Whether Airflow has parsed the DAG's file."""
        return self._client.get(f"/dags/{dag_id}").status_code == httpx.codes.OK

    def is_paused(self, dag_id: str) -> bool:
        """Whether the DAG is paused."""
        return bool(self.request("GET", f"/dags/{dag_id}", f"show {dag_id}")["is_paused"])

    def runs(self, dag_id: str) -> list[str]:
        """Ids of the runs that have ended, go on or are queued."""
        found = self.request("GET", f"/dags/{dag_id}/dagRuns", f"list the runs of {dag_id}")
        return [run["dag_run_id"] for run in found["dag_runs"]]

    def unpause(self, dag_id: str) -> None:
        """Unpause the DAG."""
        self.request("PATCH", f"/dags/{dag_id}", f"unpause {dag_id}", json={"is_paused": False})

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        """Trigger a run; returns its id."""
        body = {"logical_date": None, "conf": conf or {}}
        run: str = self.request("POST", f"/dags/{dag_id}/dagRuns", f"trigger {dag_id}", json=body)[
            "dag_run_id"
        ]
        return run

    def active_runs(self, dag_id: str) -> list[str]:
        """Ids of the runs that are queued or running."""
        states = {"state": ["queued", "running"]}
        found = self.request("GET", f"/dags/{dag_id}/dagRuns", f"list the runs of {dag_id}", params=states)
        return [run["dag_run_id"] for run in found["dag_runs"]]

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """A run as it is now."""
        found: dict[str, Any] = self.request("GET", f"/dags/{dag_id}/dagRuns/{run_id}", f"show {run_id}")
        return found

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        """The tasks of a run as they are now."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        found = self.request("GET", path, f"show the tasks of {run_id}")["task_instances"]
        return [TaskState(task["task_id"], task["state"]) for task in found]

    def task_log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> Iterator[str]:
        """The lines that a task logged, as text."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}"
        content = self.request("GET", path, f"show the log of {task_id}", params={"full_content": True})
        for line in content["content"]:
            yield str(line.get("event", line)) if isinstance(line, dict) else str(line)

    def returned(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """The XCom of a task."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        return self.request("GET", path, f"show what {task_id} returned")["value"]

    def page(self, address: str) -> str:
        """The text of a page, requested as the logged-in admin."""
        return _checked(self._client.get(address), f"show {address}").text


def _checked(answer: httpx.Response, what: str) -> httpx.Response:
    if answer.is_error:
        raise AirflowRefused(what, answer.status_code, answer.text[:300])
    return answer
