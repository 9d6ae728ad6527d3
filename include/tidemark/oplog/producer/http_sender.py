"""Sends operations to an agent by HTTP. What ``send`` has returned for is in Kafka."""

import time
from collections.abc import Callable, Sequence
from random import Random
from types import TracebackType
from typing import Any, Self

import httpx

from tidemark.oplog.consumer.backoff import Backoff, seconds_to_wait
from tidemark.oplog.producer.errors import BadAgentAddress, OperationsNotAcknowledged, OperationsRefused
from tidemark.oplog.producer.lines import OperationLine, to_send_again

ATTEMPTS = 5
TIMEOUT = httpx.Timeout(10.0, read=60.0)
_LATER = {408, 425, 429}


class HttpSender:
    """A connection to an agent."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        attempts: int = ATTEMPTS,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """Connects to nothing yet; raises ``BadAgentAddress``.

        Args:
            url: The agent's address.
            token: What it asks of senders.
            attempts: How many attempts a request has.
            wait: Waits for so many seconds between two attempts.
        """
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL:
            raise BadAgentAddress(url) from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise BadAgentAddress(url)
        self._shown = str(self._url.copy_with(userinfo=b"", query=None, fragment=None))
        headers = {"Content-Type": "application/x-ndjson"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(headers=headers, timeout=TIMEOUT)
        self._attempts = attempts
        self._wait = wait
        self.acknowledged = 0
        """Operations that were acknowledged so far."""

    def send(self, lines: Sequence[OperationLine]) -> None:
        """Sends the lines of one request, and those that were not acknowledged again.

        Raises:
            OperationsRefused: A retry cannot change the answer.
            OperationsNotAcknowledged: As many attempts as allowed have failed.
        """
        left = list(lines)
        backoff = Backoff(Random())
        for attempt in range(1, self._attempts + 1):
            reason, asked = "", 0.0
            try:
                answer = self._client.post(self._url, content=b"\n".join(line.text for line in left))
            except httpx.TransportError as error:
                reason = f"{type(error).__name__} {error}"
            else:
                if answer.is_success:
                    self.acknowledged += len(lines)
                    return
                reason = _reason(answer)
                if answer.status_code not in _LATER and answer.status_code < 500:
                    raise OperationsRefused(self._shown, answer.status_code, reason, self.acknowledged)
                left = to_send_again(left, _acknowledged(answer))
                asked = seconds_to_wait(answer.headers.get("retry-after"))
            if attempt < self._attempts:
                self._wait(backoff.failed(asked))
        first = min(line.number for line in left)
        raise OperationsNotAcknowledged(self._shown, first, self._attempts, reason, self.acknowledged)

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _acknowledged(answer: httpx.Response) -> list[int]:
    found = _document(answer).get("acknowledged")
    return [one for one in found if isinstance(one, int)] if isinstance(found, list) else []


def _reason(answer: httpx.Response) -> str:
    document = _document(answer)
    said = document.get("error")
    text = said if isinstance(said, str) else answer.text
    for line in document.get("lines") or ():
        if isinstance(line, dict):
            text += f" Line {line.get('line')} of the request: {line.get('error')}."
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown.strip()[:1_000] or f"status {answer.status_code}"
