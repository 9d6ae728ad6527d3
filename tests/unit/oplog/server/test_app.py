"""Requests and their answers: routing, access, operations, figures."""

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.agent_requests import Answered, ScriptedStreams, ask
from tests.support.clocks import Seconds
from tests.support.scripted_producer import ScriptedProducer, failure

from tidemark.errors import TidemarkError
from tidemark.operations.filters import OperationFilter
from tidemark.oplog.agent.ingest.counters import IngestCounters
from tidemark.oplog.agent.ingest.intake import Intake
from tidemark.oplog.agent.ingest.queue import IngestQueue
from tidemark.oplog.agent.server.access import Access
from tidemark.oplog.agent.server.app import AgentApp
from tidemark.oplog.agent.server.bodies import BodyReader
from tidemark.oplog.agent.server.cors import CrossOrigin
from tidemark.oplog.agent.server.health import HealthChecks
from tidemark.oplog.agent.server.posts import OperationPosts
from tidemark.oplog.agent.server.tokens import AgentToken, TokenRole, digest_of

pytestmark = pytest.mark.unit

GOOD = {"event": "insert", "parents": ["user/1"], "type": "video", "id": "x1"}
JSON = "application/json"
NDJSON = "application/x-ndjson"
READER = AgentToken("shop", digest_of("reader-token"), frozenset({TokenRole.READER}))
SENDER = AgentToken("cms", digest_of("sender-token"), frozenset({TokenRole.SENDER}))


def line(**fields: Any) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


@dataclass
class World:
    """An application with a scripted producer and scripted streams."""

    tokens: tuple[AgentToken, ...] = ()
    origins: tuple[str, ...] = ()
    most: int = 10
    most_streams: int = 2
    streams: ScriptedStreams | None = field(default_factory=ScriptedStreams)
    within: float = 10.0
    problem: str | None = None
    trouble: TidemarkError | None = None
    clock: Seconds = field(default_factory=Seconds)

    def __post_init__(self) -> None:
        self.producer = ScriptedProducer(acknowledges=True)
        self.counters = IngestCounters()
        self.queue = IngestQueue(
            self.most, self.counters, lambda key: 0, self.producer.reporting, clock=self.clock
        )
        self.access = Access(self.tokens, self.most_streams, self.clock)
        self.app = AgentApp(
            access=self.access,
            posts=OperationPosts(
                Intake(self.queue, self.counters),
                BodyReader(10_000),
                5,
                clock=lambda: 0,
                within=self.within,
                problem=lambda: self.problem,
            ),
            streams=self.streams,
            health=HealthChecks({"kafka": self.check}, self.clock),
            status=lambda: {"status": "OK", **self.counters.figures(), "clients": 0},
            cors=CrossOrigin(self.origins),
        )

    async def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def ask(self, method: str, path: str = "/", **more: Any) -> Answered:
        return asyncio.run(ask(self.app, method, path, then=self.queue.poll, **more))

    def post(self, body: Any, type_: str = JSON, **more: Any) -> Answered:
        return self.ask("POST", body=body, content_type=type_, **more)


# Operations


@pytest.mark.parametrize("path", ["/", "/ops"])
def test_h1_c5_an_operation_by_http_is_answered_when_kafka_has_it(path):
    world = World()
    assert world.ask("POST", path, body=line(), content_type=JSON).status == 204
    assert world.counters.ingested == 1


def test_a_request_is_not_answered_before_kafka_has_acknowledged_it():
    world = World(within=0.01)
    world.producer.acknowledges = False
    answered = world.post(line())
    assert (answered.status, answered.headers["retry-after"]) == (503, "5")
    assert world.counters.ingested == 0


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"event": "insert",}', b"\xff", line(id=7), line(event="create")]
)
def test_c5_bad_input_is_400_with_the_reason(body):
    world = World()
    answered = world.post(body)
    assert answered.status == 400
    assert "Nothing was sent" in answered.document["error"]
    assert (world.counters.error, world.producer.sent) == (1, [])


@pytest.mark.parametrize("type_", ["text/plain", "multipart/form-data", "", "application/json2"])
def test_c5_another_content_type_is_415(type_):
    assert World().post(line(), type_).status == 415


def test_c6_a_charset_of_the_content_type_is_accepted():
    assert World().post(line(), "application/json; charset=utf-8").status == 204
    assert World().post(line(), "Application/JSON;charset=UTF-8").status == 204


def test_another_charset_or_encoding_is_415():
    assert World().post(line(), "application/json; charset=latin-1").status == 415
    assert World().post(line(), content_encoding="gzip").status == 415


def test_lines_are_sent_together_in_their_order():
    world = World()
    body = b"\n".join([line(id="a"), b"", line(id="b")]) + b"\r\n"
    assert world.post(body, NDJSON).status == 204
    assert [key for _, key, _ in world.producer.sent] == [b"video/a", b"video/b"]


def test_one_bad_line_refuses_all_and_is_named():
    world = World()
    answered = world.post(b"\n".join([line(), b"{", line(id="")]), NDJSON)
    assert answered.status == 400
    assert [bad["line"] for bad in answered.document["lines"]] == [2, 3]
    assert world.producer.sent == []


def test_a_partial_failure_names_the_acknowledged_lines():
    world = World()
    world.producer.acknowledges = False

    def finish() -> None:
        if len(world.producer.under_way) == 3:
            world.producer.finish(1)
            world.producer.finish(1, failure("refused by the topic"))
            world.producer.finish(1)

    body = b"\n".join([line(), b"", line(), line()])
    answered = asyncio.run(ask(world.app, "POST", "/", body=body, then=finish, content_type=NDJSON))
    assert (answered.status, answered.document["acknowledged"]) == (503, [1, 4])
    assert "refused by the topic" in answered.document["error"]


def test_a_request_without_operations_has_nothing_to_wait_for():
    assert World().post(b"\n\n", NDJSON).status == 204


def test_too_many_lines_are_413():
    assert World().post(b"\n".join([line()] * 6), NDJSON).status == 413


def test_a_body_that_is_announced_too_large_is_not_read():
    answered = World().post(b"", content_length="10001")
    assert (answered.status, answered.headers["connection"]) == (413, "close")


def test_a_body_that_grows_too_large_is_413():
    answered = World().post([b"x" * 6_000] * 1_000)
    assert (answered.status, answered.headers["connection"]) == (413, "close")


def test_c4_a_full_queue_is_429_and_nothing_is_sent_in_part():
    world = World(most=3)
    answered = world.post(b"\n".join([line()] * 4), NDJSON)
    assert answered.status == 413
    world.producer.acknowledges = False
    world.queue.put(Intake(world.queue, world.counters).read_lines([(1, line())], 0)[0][0].record)
    answered = world.post(b"\n".join([line()] * 3), NDJSON)
    assert (answered.status, answered.headers["retry-after"]) == (429, "1")
    assert len(world.producer.sent) == 1


def test_h4_while_kafka_is_away_requests_are_refused_before_they_are_queued():
    world = World()
    world.producer.acknowledges = False
    world.queue.put(Intake(world.queue, world.counters).read_lines([(1, line())], 0)[0][0].record)
    world.clock.now += 10
    answered = world.post(line())
    assert (answered.status, world.queue.in_flight) == (503, 1)
    world.producer.acknowledges = True
    world.queue.poll()
    assert world.post(line()).status == 204


def test_a_topic_that_has_changed_takes_no_operations():
    answered = World(problem="The topic oplog does not exist.").post(line())
    assert (answered.status, answered.document["error"]) == (
        503,
        "The topic oplog does not exist. Nothing was sent.",
    )


def test_a_client_that_leaves_gets_no_answer():
    world = World()
    answered = asyncio.run(ask(world.app, "POST", "/", body=[], content_type=JSON))
    assert answered.status == 0


# Streams


@pytest.mark.parametrize("accept", ["text/event-stream", "*/*", "text/*", "a/b, text/event-stream;q=0.1"])
def test_c7_r11_a_stream_is_served_to_what_accepts_it(accept):
    answered = World().ask("GET", accept=accept)
    assert (answered.status, answered.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


@pytest.mark.parametrize("accept", ["text/html", "application/json", "text/event-stream;q=0"])
def test_c7_what_accepts_no_stream_gets_406(accept):
    assert World().ask("GET", accept=accept).status == 406


def test_c7_406_comes_before_401():
    assert World(tokens=(READER,)).ask("GET", accept="text/html").status == 406


def test_lines_of_json_are_served_where_they_are_preferred():
    world = World()
    world.ask("GET", accept="application/x-ndjson, */*;q=0.5")
    world.ask("GET", accept="application/x-ndjson, text/event-stream")
    assert [request.ndjson for request in world.streams.requests] == [True, False]


def test_r19_r20_filters_are_lists_and_types_are_lower_cased():
    world = World()
    world.ask("GET", query="types=Video,user&parents=a/1&parents=b/2,&types=")
    (request,) = world.streams.requests
    assert request.filter == OperationFilter(frozenset({"video", "user"}), frozenset({"a/1", "b/2"}))


def test_the_header_of_the_last_id_wins_over_the_query():
    world = World()
    world.ask("GET", query="last_event_id=a&since=0", last_event_id="b")
    world.ask("GET", query="last_event_id=a")
    world.ask("GET")
    assert [request.last_event_id for request in world.streams.requests] == ["b", "a", None]
    assert [request.since for request in world.streams.requests] == ["0", None, None]


@pytest.mark.parametrize(
    "query", ["types=%ff", "last_event_id=a%0d%0aX: y", "types=%00", "&".join("a=b" for _ in range(101))]
)
def test_a_query_that_cannot_be_read_is_400(query):
    assert World().ask("GET", query=query).status == 400


def test_a_stream_has_the_limits_and_the_end_of_its_token():
    limits, roles = OperationFilter.of(["video"]), frozenset({TokenRole.READER})
    limited = AgentToken("shop", digest_of("reader-token"), roles, limits, 1_060.0)
    world = World(tokens=(limited,))
    world.ask("GET", authorization="Bearer reader-token")
    (request,) = world.streams.requests
    assert request.limits == OperationFilter.of(["video"])
    assert request.expires_at is not None


def test_streams_of_one_token_are_limited_and_others_go_on():
    other = AgentToken("other", digest_of("other-token"), frozenset({TokenRole.READER}))
    world = World(tokens=(READER, other), most_streams=1)
    with world.access.stream(READER):
        refused = world.ask("GET", authorization="Bearer reader-token")
        served = world.ask("GET", authorization="Bearer other-token")
    assert (refused.status, served.status) == (429, 200)
    assert world.ask("GET", authorization="Bearer reader-token").status == 200


def test_an_agent_that_only_takes_operations_has_no_streams():
    answered = World(streams=None).ask("GET")
    assert (answered.status, answered.headers["allow"]) == (405, "POST, OPTIONS")


# Other requests


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("PUT", "/", 405), ("DELETE", "/ops", 405), ("HEAD", "/", 405), ("POST", "/status", 405)),
        *(
            ("GET", "/nope", 404),
            ("GET", "//", 404),
            ("GET", "/../etc/passwd", 404),
            ("POST", "/status/", 404),
        ),
        *(("HEAD", "/status", 200), ("HEAD", "/health", 200), ("GET", "/ticket", 405), ("GET", "/ops/", 404)),
        ("BREW" * 100, "/", 405),
    ],
)
def test_c8_methods_and_paths(method, path, status):
    assert World().ask(method, path).status == status


def test_405_says_what_is_allowed():
    assert World().ask("PUT").headers["allow"] == "GET, POST, OPTIONS"


def test_r36_status_is_a_json_object():
    answered = World().ask("GET", "/status")
    assert answered.headers["content-type"] == "application/json"
    assert answered.document["status"] == "OK"


def test_metrics_are_prometheus_text():
    answered = World().ask("GET", "/metrics")
    assert answered.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"\ntidemark_oplog_events_received_total 0\n" in answered.body
    assert answered.body.endswith(b"tidemark_oplog_up 1\n")


def test_health_is_503_where_a_service_does_not_answer():
    assert World().ask("GET", "/health").status == 200
    answered = World(trouble=TidemarkError("broker secret-host:9092 is away")).ask("GET", "/health")
    assert (answered.status, list(answered.document["problems"])) == (503, ["kafka"])
    assert b"secret-host" not in answered.body


def test_a_handler_that_fails_is_500_and_the_next_request_is_answered():
    world = World()
    world.app._status = lambda: {}[0]
    assert world.ask("GET", "/status").status == 500
    assert world.ask("GET", "/health").status == 200


def test_a_stopping_agent_refuses_new_work():
    world = World()
    world.app.is_stopping = True
    answers = [world.post(line()), world.ask("GET"), world.ask("GET", "/health")]
    assert [answered.status for answered in answers] == [503] * 3
    assert {answered.headers["connection"] for answered in answers} == {"close"}


# Access


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"any:{password}".encode()).decode()


@pytest.mark.parametrize("given", ["Bearer sender-token", "bearer  sender-token", basic("sender-token")])
def test_h9_a_token_is_bearer_or_the_password_of_any_user(given):
    assert World(tokens=(READER, SENDER)).post(line(), authorization=given).status == 204


@pytest.mark.parametrize("given", ["Bearer wrong", "Bearer ", "Basic !!", "Digest x", basic("wrong"), "é"])
def test_c5_a_wrong_token_is_401_with_a_challenge(given):
    answered = World(tokens=(SENDER,)).post(line(), authorization=given)
    assert answered.status == 401
    assert answered.headers["www-authenticate"].startswith("B")


def test_401_comes_before_415():
    assert World(tokens=(SENDER,)).post(line(), "text/plain").status == 401


def test_a_reader_s_token_sends_nothing_and_a_sender_s_reads_nothing():
    world = World(tokens=(READER, SENDER))
    assert world.post(line(), authorization="Bearer reader-token").status == 403
    assert world.ask("GET", authorization="Bearer sender-token").status == 403
    assert world.ask("GET", "/status", authorization="Bearer sender-token").status == 403


@pytest.mark.parametrize("path", ["/status", "/metrics"])
def test_figures_need_a_reader_s_token_when_there_are_tokens(path):
    world = World(tokens=(READER,))
    assert world.ask("GET", path).status == 401
    assert world.ask("GET", path, authorization="Bearer reader-token").status == 200


def test_health_needs_no_token():
    assert World(tokens=(READER,)).ask("GET", "/health").status == 200


def test_a_limited_sender_sends_what_it_may():
    limits = OperationFilter.of(["video"], ["user/1"])
    limited = AgentToken("cms", digest_of("sender-token"), frozenset({TokenRole.SENDER}), limits)
    world, given = World(tokens=(limited,)), "Bearer sender-token"
    assert world.post(line(), authorization=given).status == 204
    for wrong in ({"type": "user"}, {"parents": []}, {"parents": ["user/1", "user/2"]}):
        assert world.post(line(**wrong), authorization=given).status == 403
    assert len(world.producer.sent) == 1


def test_a_token_that_has_expired_is_401():
    expiring = AgentToken("shop", digest_of("reader-token"), frozenset({TokenRole.READER}), expires=1_060.0)
    world = World(tokens=(expiring,))
    assert world.ask("GET", authorization="Bearer reader-token").status == 200
    world.clock.now += 60
    assert world.ask("GET", authorization="Bearer reader-token").status == 401


def test_a_ticket_opens_one_stream_within_a_minute():
    world = World(tokens=(READER,))
    issued = world.ask("POST", "/ticket", authorization="Bearer reader-token").document
    query = f"ticket={issued['ticket']}"
    assert issued["expires_in"] == 60
    assert [world.ask("GET", query=query).status for _ in range(2)] == [200, 401]


def test_a_ticket_is_not_valid_after_a_minute():
    world = World(tokens=(READER,))
    issued = world.ask("POST", "/ticket", authorization="Bearer reader-token").document
    world.clock.now += 60
    assert world.ask("GET", query=f"ticket={issued['ticket']}").status == 401


def test_a_ticket_needs_a_reader_s_token():
    world = World(tokens=(READER, SENDER))
    assert world.ask("POST", "/ticket").status == 401
    assert world.ask("POST", "/ticket", authorization="Bearer sender-token").status == 403


def test_unused_tickets_are_bounded(monkeypatch):
    monkeypatch.setattr("tidemark.oplog.agent.server.access.MOST_TICKETS", 2)
    world, given = World(tokens=(READER,)), "Bearer reader-token"
    assert [world.ask("POST", "/ticket", authorization=given).status for _ in range(3)] == [200, 200, 429]
    world.clock.now += 61
    assert world.ask("POST", "/ticket", authorization=given).status == 200


# Pages of other origins


def test_a_listed_origin_may_read_answers_and_the_headers_of_streams():
    world = World(origins=("https://shop.example",))
    headers = world.ask("GET", origin="https://shop.example").headers
    assert headers["access-control-allow-origin"] == "https://shop.example"
    assert "X-Oplog-Mode" in headers["access-control-expose-headers"]
    refused = World(origins=("https://shop.example",), tokens=(READER,)).ask(
        "GET", origin="https://shop.example"
    )
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "https://shop.example")


@pytest.mark.parametrize("origins", [(), ("https://shop.example",)])
def test_another_origin_gets_no_permission(origins):
    for method in ("GET", "OPTIONS"):
        headers = World(origins=origins).ask(method, origin="https://evil.example").headers
        assert "access-control-allow-origin" not in headers


def test_a_preflight_is_answered_without_a_token():
    world = World(origins=("*",), tokens=(READER,))
    answered = world.ask("OPTIONS", origin="https://shop.example")
    assert (answered.status, answered.headers["access-control-allow-origin"]) == (204, "*")
    assert "Last-Event-ID" in answered.headers["access-control-allow-headers"]
