"""Bodies of requests, read with limits of bytes and time, and within one budget for all requests together."""

import asyncio

from tidemark.oplog.agent.server.answers import CLOSE, Answer, Receive, refusal, try_again

BODY_WITHIN = 30.0
"""Seconds from the headers to the end of the body."""
FREE = 16_384
"""Bytes of a body that need no budget: a single operation is never refused for the sake of others."""
BUDGET = 64_000_000
"""Bytes of the bodies that are being received."""
_BUSY = "Too many large requests are being received."


class BodyRefused(Exception):
    """A body is not taken; the handler of the request sends the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class SenderGone(Exception):
    """The client has closed the connection, so there is nothing to answer."""


class BodyReader:
    """Reads the bodies of an agent's requests."""

    def __init__(self, most: int, *, budget: int = BUDGET, within: float = BODY_WITHIN) -> None:
        """``most``: the maximum of bytes of one body. ``within``: seconds for one body."""
        self._most, self._left, self._within = most, budget, within

    async def read(self, receive: Receive, announced: bytes | None) -> bytes:
        """The whole body. ``announced``: the header ``Content-Length``.

        Raises ``BodyRefused`` or ``SenderGone``.
        """
        if announced is not None and announced.isdigit() and int(announced[:20]) > self._most:
            raise BodyRefused(self._too_large())
        taken = 0
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._within):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise SenderGone
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > self._most:
                        raise BodyRefused(self._too_large())
                    needed = max(0, size - FREE) - taken
                    if needed > self._left:
                        raise BodyRefused(try_again(503, 1, f"{_BUSY} Nothing was sent.", CLOSE))
                    self._left -= needed
                    taken += needed
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            late = f"The body did not arrive within {self._within:g} s. Nothing was sent."
            raise BodyRefused(refusal(408, late, CLOSE)) from None
        finally:
            self._left += taken

    def _too_large(self) -> Answer:
        # The rest of the body is not read, so the connection cannot be used again.
        reason = f"The body has more than {self._most} bytes. Nothing was sent. Split it."
        return refusal(413, reason, CLOSE)
