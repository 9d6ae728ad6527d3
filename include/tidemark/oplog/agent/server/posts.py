"""``POST /``: one operation as a JSON object, or many as lines of JSON. 204 means that Kafka has all of them.

All lines are validated before any is sent. An answer other than 204 says which operations were acknowledged;
the others may be in the topic or not, and may be sent again: an operation that comes twice changes nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice

from tidemark.clock import Clock, wall_clock_millis
from tidemark.oplog.agent.ingest.intake import BadLine, Intake, LineRead, SentOperations
from tidemark.oplog.agent.server.answers import CLOSE, Answer, Receive, refusal, try_again
from tidemark.oplog.agent.server.bodies import BodyReader
from tidemark.oplog.agent.server.headers import NDJSON, RequestHead, media_type
from tidemark.oplog.agent.server.tokens import AgentToken

ACKNOWLEDGED_WITHIN = 10.0
"""Seconds that a request waits for Kafka."""
MOST_REPORTED = 20
"""Bad lines that an answer names."""
RETRY_AFTER = 5
"""Seconds after which a client should try again while Kafka does not answer."""
AT_ONCE = 500
"""Lines that are read before the event loop serves others again."""
ONE = "application/json"


class OperationPosts:
    """Answers requests with operations."""

    def __init__(
        self,
        intake: Intake,
        bodies: BodyReader,
        most_lines: int,
        *,
        clock: Clock = wall_clock_millis,
        within: float = ACKNOWLEDGED_WITHIN,
        problem: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``problem``: why nothing is taken now, such as a topic that has changed; None where all is well."""
        self._intake, self._bodies, self._most_lines = intake, bodies, most_lines
        self._clock, self._within, self._problem = clock, within, problem

    async def answer(self, head: RequestHead, receive: Receive, token: AgentToken | None) -> Answer:
        """The answer to a request. Raises ``BodyRefused`` or ``SenderGone``."""
        type_, charset = media_type(head.text("content-type"))
        if type_ not in (ONE, NDJSON):
            return refusal(415, f"The content type is not {ONE} or {NDJSON}. Nothing was sent.", CLOSE)
        if charset not in (None, "utf-8", "utf8"):
            return refusal(415, "The charset is not UTF-8. Nothing was sent.", CLOSE)
        if (head.text("content-encoding") or "identity").lower() != "identity":
            return refusal(415, "Content encodings are not supported. Nothing was sent.", CLOSE)
        if refused := self._not_now():
            return refused
        body = await self._bodies.read(receive, head.headers.get("content-length"))
        return await self._take(body, token, type_ == NDJSON)

    def _not_now(self) -> Answer | None:
        if problem := self._problem():
            return try_again(503, RETRY_AFTER, f"{problem} Nothing was sent.", CLOSE)
        if self._intake.queue.is_stalled:
            return try_again(503, RETRY_AFTER, "Kafka does not answer. Nothing was sent.", CLOSE)
        return None

    async def _take(self, body: bytes, token: AgentToken | None, many: bool) -> Answer:
        lines = _lines(body, self._most_lines + 1) if many else [(1, body)]
        if len(lines) > self._most_lines:
            return refusal(413, f"There are more than {self._most_lines} operations. Nothing was sent.")
        good, bad = await self._read(lines)
        if bad and not many:
            return refusal(400, f"The operation is refused: {bad[0].reason}. Nothing was sent.")
        if bad:
            named = [{"line": one.number, "error": one.reason} for one in bad[:MOST_REPORTED]]
            reason = f"{len(bad)} of {len(lines)} operations are refused. Nothing was sent."
            return refusal(400, reason, lines=named)
        if token and not all(token.may_send(one.operation.type, one.operation.parents) for one in good):
            return refusal(403, "The token does not allow such a type or parent. Nothing was sent.")
        most = self._intake.queue.most
        if len(good) > most:
            return refusal(413, f"There are more than {most} operations. Nothing was sent.")
        sent = self._intake.send(good)
        if sent is None:
            return try_again(429, 1, "The queue for Kafka is full. Nothing was sent.")
        return await self._acknowledged(sent) if good else Answer(204)

    async def _read(self, lines: Sequence[tuple[int, bytes]]) -> tuple[list[LineRead], list[BadLine]]:
        """All lines, read in parts, so that streams and other requests do not wait for a large one."""
        good: list[LineRead] = []
        bad: list[BadLine] = []
        received = self._clock()
        for first in range(0, len(lines), AT_ONCE):
            if first:
                await asyncio.sleep(0)
            read, refused = self._intake.read_lines(lines[first : first + AT_ONCE], received)
            good += read
            bad += refused
        return good, bad

    async def _acknowledged(self, sent: SentOperations) -> Answer:
        try:
            await asyncio.wait_for(asyncio.shield(sent.done), self._within)
        except TimeoutError:
            reason = f"Kafka has not acknowledged all operations within {self._within:g} s."
        else:
            if not sent.failed:
                return Answer(204)
            reason = f"Kafka has not acknowledged all operations: {next(iter(sent.failed.values()))}."
        return try_again(
            503,
            RETRY_AFTER,
            f"{reason} Those that are not listed may be in the topic or not; send them again.",
            acknowledged=sorted(sent.acknowledged),
        )


def _lines(body: bytes, most: int) -> list[tuple[int, bytes]]:
    """The first lines of a body with their numbers; blank ones are skipped, as the format allows."""
    found = ((number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip())
    return list(islice(found, most))
