"""Item 22: acknowledging without a reason is refused before anything is started, by the form itself."""

import asyncio
import json
from typing import Any

import pytest

from tidemark_airflow.pages.require_reason import RequireReason
from tidemark_airflow.tasks.resume_request import ResumeAnswer

pytestmark = pytest.mark.unit

RUNS = "/api/v2/dags/orders.resume/dagRuns"
ANSWER = f"{RUNS}/auto__archive__gate_7/taskInstances/ask/-1/hitlDetails"


class Airflow:
    """The API behind the middleware: takes everything, and keeps what it was sent."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.app = RequireReason(self._answer)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        self.taken.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    def ask(self, method: str, path: str, body: bytes, pieces: int = 1) -> tuple[int, str]:
        """Send a request, its body in so many pieces; the status and what was said."""
        size = -(-len(body) // pieces) or 1
        cut = [body[start : start + size] for start in range(0, max(len(body), 1), size)]
        waiting = [
            {"type": "http.request", "body": piece, "more_body": number + 1 < len(cut)}
            for number, piece in enumerate(cut)
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return waiting.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app({"type": "http", "method": method, "path": path}, receive, send))
        start, end = sent
        return start["status"], json.loads(end["body"]).get("detail", "")

    def answer(self, option: str, pieces: int = 1, **params: Any) -> tuple[int, str]:
        body = {"chosen_options": [option], "params_input": params}
        return self.ask("PATCH", ANSWER, json.dumps(body).encode(), pieces)

    def trigger(self, **conf: Any) -> tuple[int, str]:
        return self.ask("POST", RUNS, json.dumps({"logical_date": None, "conf": conf}).encode())


@pytest.fixture
def airflow() -> Airflow:
    return Airflow()


# The question


@pytest.mark.parametrize("params", [{}, {"reason": ""}, {"reason": "  \n"}, {"reason": None}, {"reason": 7}])
def test_an_acknowledgement_without_a_reason_is_refused_and_the_question_stays_open(airflow, params):
    status, said = airflow.answer(ResumeAnswer.ACKNOWLEDGE, **params)
    assert (status, "say why, in the field `reason`" in said, airflow.taken) == (400, True, [])


@pytest.mark.parametrize("pieces", [1, 5])
def test_an_acknowledgement_with_a_reason_passes_whole(airflow, pieces):
    assert airflow.answer(ResumeAnswer.ACKNOWLEDGE, pieces, reason="a test record") == (200, "")
    assert json.loads(airflow.taken[0])["params_input"] == {"reason": "a test record"}


@pytest.mark.parametrize("option", [ResumeAnswer.RETRY, ResumeAnswer.STOP])
def test_other_answers_need_no_reason(airflow, option):
    assert airflow.answer(option, reason="") == (200, "")


# The parameters


@pytest.mark.parametrize("action", ["acknowledge", "rewind", "stop", "open"])
@pytest.mark.parametrize("reason", ["", " ", None])
def test_a_run_that_does_something_needs_a_reason(airflow, action, reason):
    status, said = airflow.trigger(writer="archive", action=action, id=3, reason=reason)
    assert (status, f"to {action} needs one" in said, airflow.taken) == (400, True, [])


@pytest.mark.parametrize("action", ["acknowledge", "rewind"])
def test_a_run_about_a_message_needs_its_id(airflow, action):
    status, said = airflow.trigger(writer="archive", action=action, reason="why")
    assert (status, f"say which id to {action}" in said) == (400, True)


@pytest.mark.parametrize(
    "conf", [{}, {"writer": "archive"}, {"action": "resume"}, {"action": "stop", "reason": "maintenance"}]
)
def test_a_run_that_has_what_it_needs_is_started(airflow, conf):
    assert airflow.trigger(**conf) == (200, "")


# Everything else


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v2/dags/orders.replicate/dagRuns"),
        ("PATCH", "/api/v2/dags/orders.compact_log/dagRuns/r/taskInstances/approve/-1/hitlDetails"),
        ("GET", ANSWER),
        ("POST", "/api/v2/dags/orders.resume/dagRuns/list"),
    ],
)
def test_other_requests_are_not_looked_at(airflow, method, path):
    body = json.dumps({"chosen_options": [ResumeAnswer.ACKNOWLEDGE], "conf": {"action": "stop"}}).encode()
    assert airflow.ask(method, path, body)[0] == 200


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'{"conf": []}', b'{"conf": null}'])
def test_what_is_not_understood_is_airflows_to_judge(airflow, body):
    assert airflow.ask("POST", RUNS, body)[0] == 200
    assert airflow.taken == [body]


def test_what_is_no_request_passes():
    passed = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    asyncio.run(RequireReason(app)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert passed == ["lifespan"]
