"""Following a stream over its connections: what to ask for, what its bytes mean, when to connect again.

Does no input or output and reads no clock: ``OpLog`` and ``AsyncOpLog`` move the bytes. After a connection
has ended, the next one continues after the newest item that was handed out, whether it is done or not: this
process still has it.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from logging import getLogger

from tidemark.oplog.consumer import decoding
from tidemark.oplog.consumer.backoff import Backoff
from tidemark.oplog.consumer.errors import (
    AgentUnreachable,
    ReplicationNeeded,
    StreamBroken,
    StreamGarbled,
    StreamRefused,
)
from tidemark.oplog.consumer.event_stream import Block, EventStreamParser
from tidemark.oplog.consumer.in_flight import InFlight, Position
from tidemark.oplog.consumer.items import OpLogItem, OpLogLive, OpLogOperation, OpLogReset
from tidemark.oplog.consumer.request import StreamAddress, judged

EVERYTHING = "0"
"""The id that asks for a full replication."""
FROM_NOW = "live"
"""The mode of a stream that begins now, with nothing of what was before."""
MOST_GARBLED = 5
"""So many streams in a row may be garbled; what is wrong then does not pass by itself."""

events = getLogger("tidemark.oplog")


@dataclass(frozen=True, slots=True)
class FollowingRules:
    """What a consumer allows.

    Attributes:
        allow_replication: Whether the agent may answer with a full replication.
        attempts: How many attempts in a row may fail; None for any number.
    """

    allow_replication: bool
    attempts: int | None


class Following:
    """One consumer's view of its stream."""

    def __init__(
        self,
        address: StreamAddress,
        rules: FollowingRules,
        start: Position,
        in_flight: InFlight,
        backoff: Backoff,
    ) -> None:
        """Begins without a connection.

        Args:
            address: Where the stream is.
            rules: What the consumer allows.
            start: Where it begins. With a reset that is not done, this is the first item.
            in_flight: What the consumer has handed out.
            backoff: The waits between connections.
        """
        self._address = address
        self._rules = rules
        self._may_reset = rules.allow_replication or start.event_id == EVERYTHING
        self._pending_reset = start.event_id if start.reset else None
        self._in_flight = in_flight
        self._backoff = backoff
        self._blocks: deque[Block] = deque()
        self._parser = EventStreamParser()
        self._asked_for: str | None = None
        self._replicate = False
        self._garbled = 0
        self._garbage: StreamGarbled | None = None  # behind the blocks that were received before it
        self._attempts = 0
        self.is_connected = False
        """Whether there is a connection that has not been lost."""
        self.wait = 0.0
        """Seconds to wait before the next connection."""

    @property
    def url(self) -> str:
        """The address with its query."""
        return str(self._address.url)

    def connecting(self) -> dict[str, str]:
        """The headers of the next request."""
        self._asked_for = EVERYTHING if self._replicate else self._in_flight.received
        self._parser = EventStreamParser()
        self._attempts += 1
        return self._address.headers(self._asked_for)

    def answered(self, status: int, headers: Mapping[str, str], excerpt: bytes = b"") -> None:
        """The agent has answered; ``is_connected`` says whether with a stream.

        Raises:
            StreamDenied: It does not accept the token.
            StreamRefused: A retry cannot change the answer.
            AgentUnreachable: It was the last attempt allowed.
        """
        later = judged(self._address.shown, status, headers, excerpt)
        if later is not None:
            self.lost(later.reason, later.wait)
            return
        self.is_connected = True
        self._attempts = 0
        events.info("%s: connected at %s", self._address.shown, self._asked_for or "now")

    def received(self, chunk: bytes) -> None:
        """Bytes of the stream; none of them is an item yet."""
        try:
            self._blocks.extend(self._parser.feed(chunk))
        except StreamGarbled as garbled:
            self._garbage = garbled

    def lost(self, reason: str, at_least: float = 0.0) -> None:
        """There is no connection (any more). Raises ``AgentUnreachable`` after the last attempt allowed."""
        self._give_up(at_least)
        events.warning("%s: %s; connecting again in %.1f s", self._address.shown, reason, self.wait)
        if self._rules.attempts is not None and self._attempts >= self._rules.attempts:
            attempts, self._attempts = self._attempts, 0  # the next iteration has as many
            raise AgentUnreachable(self._address.shown, attempts, reason)

    def next_item(self) -> OpLogItem | None:
        """The next item of what was received; None: more bytes or a connection are needed.

        Raises:
            StreamBroken: Streams were garbled several times in a row.
            StreamRefused: The agent has no replication to offer.
            ReplicationNeeded: There is a gap that only a full replication closes, and it is not allowed.
            AgentUnreachable: The stream ended, and it was the last attempt allowed.
        """
        if self._pending_reset is not None:
            number = self._in_flight.hand_out_reset(self._pending_reset)
            item = OpLogReset(self._pending_reset, number)
            self._pending_reset = None
            return item
        while self._blocks:
            block = self._blocks.popleft()
            try:
                found = self._item(block)
            except StreamGarbled as garbled:
                self._garble(garbled)
                return None
            if found is not None:
                self._garbled = 0
                return found
        if self._garbage is not None:
            self._garble(self._garbage)
        return None

    def _item(self, block: Block) -> OpLogItem | None:
        if block.retry is not None:
            self._backoff.ask(block.retry)
        said, event_id = decoding.meaning(block), decoding.event_id(block)
        if isinstance(said, decoding.Said):
            self._backoff.succeeded()
            number = self._in_flight.hand_out(event_id)
            return OpLogOperation(
                said.event,
                said.timestamp,
                said.parents,
                said.type,
                said.id,
                said.ref,
                event_id or self._in_flight.received,
                number,
            )
        match said:
            case decoding.Opened():
                self._opened(said.mode, event_id)
            case decoding.Reset():
                return self._reset(event_id)
            case decoding.Live():
                self._backoff.succeeded()
                number = self._in_flight.hand_out(event_id)
                return OpLogLive(self._in_flight.received, number)
            case decoding.Slow():
                self.lost("this consumer reads too slowly for the agent")
            case decoding.Passed() if event_id is not None:
                self._backoff.succeeded()
                self._garbled = 0
                self._in_flight.passed(event_id)
        return None

    def _opened(self, mode: str, event_id: str | None) -> None:
        if self._asked_for is None:
            # From now on, where a reconnection must not leave a gap. Any other stream begins where it was
            # asked to; until it has said more, the same request is right again.
            if event_id is not None:
                self._in_flight.passed(event_id)
        elif mode == FROM_NOW:
            self._ignored(self._asked_for)

    def _ignored(self, asked_for: str) -> None:
        """The agent did not honour the position: it has nothing of what came after it."""
        self._give_up()
        if asked_for == EVERYTHING:
            raise StreamRefused(self._address.shown, 200, "it offers no full replication")
        if not self._may_reset:
            raise ReplicationNeeded(self._address.shown, asked_for)
        events.warning(
            "%s: it cannot continue at %s; everything is replicated", self._address.shown, asked_for
        )
        self._replicate, self.wait = True, 0.0

    def _reset(self, event_id: str | None) -> OpLogReset:
        if event_id is None:
            raise StreamGarbled("a `reset` has no id")
        if not self._may_reset:
            self._give_up()
            raise ReplicationNeeded(self._address.shown, self._asked_for or "(none)")
        self._backoff.succeeded()
        self._replicate = False
        return OpLogReset(event_id, self._in_flight.hand_out_reset(event_id))

    def _garble(self, garbled: StreamGarbled) -> None:
        self._garbled += 1
        self.lost(f"the stream cannot be understood: {garbled}")
        if self._garbled >= MOST_GARBLED:
            times, self._garbled = self._garbled, 0
            raise StreamBroken(self._address.shown, str(garbled), times)

    def _give_up(self, at_least: float = 0.0) -> None:
        """This connection is over; what else it has sent is void."""
        self._blocks.clear()
        self._garbage = None
        self.is_connected = False
        self.wait = self._backoff.failed(at_least)
