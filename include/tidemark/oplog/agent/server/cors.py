"""Headers for pages of other origins, where the pipeline file lists their origins."""

from collections.abc import Collection, Sequence

from tidemark.oplog.agent.server.answers import Answer, Header, Message, Send

EXPOSED = b"Last-Event-ID, X-Oplog-Mode, Retry-After"
_VARY: Header = (b"vary", b"Origin")


class CrossOrigin:
    """The origins whose pages may use the agent."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, origin: bytes | None) -> Sequence[Header]:
        """The headers of every answer to a page of this origin; none where it may not read the answer."""
        if not self._origins or origin is None:
            return ()
        if b"*" in self._origins:
            return ((b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", EXPOSED))
        if origin not in self._origins:
            return (_VARY,)
        allowed = (b"access-control-allow-origin", origin)
        return (allowed, (b"access-control-expose-headers", EXPOSED), _VARY)

    def preflight(self, allowed: bytes) -> Answer:
        """The answer to ``OPTIONS``; the headers of every answer are added to it."""
        headers = [
            (b"allow", allowed),
            (b"access-control-allow-methods", allowed),
            (b"access-control-allow-headers", b"Authorization, Content-Type, Last-Event-ID"),
            (b"access-control-max-age", b"600"),
        ]
        return Answer(204, headers=headers if self._origins else headers[:1])

    def adding(self, origin: bytes | None, send: Send) -> Send:
        """A ``send`` that adds the headers to the start of the answer."""
        if not (ours := self.headers(origin)):
            return send

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *ours]
            await send(message)

        return with_headers
