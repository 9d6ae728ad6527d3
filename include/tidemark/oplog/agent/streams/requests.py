"""What a request for a stream asks for, as the server has read it from HTTP.

The server has checked its token and its ``Accept`` header already. Nothing here reads HTTP.
"""

from dataclasses import dataclass

from tidemark.operations.filters import OperationFilter
from tidemark.oplog.model.stream_filter import EVERYTHING, StreamFilter


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A request for a stream.

    Attributes:
        last_event_id: Where the client wants to go on: the header ``Last-Event-ID``, else the query parameter
            ``last_event_id``. None where neither was given; an empty text is refused.
        since: The query parameter ``since``: milliseconds since 1970, or a time by RFC 3339. It counts only
            without ``last_event_id``.
        filter: What the client wants to be told of.
        limits: What its token allows it to be told of. Unlike a filter, limits by parents never pass an
            operation without parents.
        ndjson: Whether to send lines of JSON instead of server-sent events.
        expires_at: When its token expires, on the clock ``time.monotonic``; None: never.
    """

    last_event_id: str | None = None
    since: str | None = None
    filter: OperationFilter = EVERYTHING
    limits: OperationFilter = EVERYTHING
    ndjson: bool = False
    expires_at: float | None = None

    @property
    def stream_filter(self) -> StreamFilter:
        """What the stream has."""
        return StreamFilter(self.filter, self.limits)
