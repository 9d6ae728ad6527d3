"""The values of a work journal: one entry per key, and at most one request queued behind it.

Times are milliseconds since 1970; an expiry of 0 is never. Nothing here reads a clock, a table or a random
number.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

LARGEST_PRIORITY = 255
LARGEST_COUNT = 255
"""The maximum of the 8-bit counters, which saturate there."""
NEVER = 0


class Status(StrEnum):
    """The two states of a stored entry; an entry that is done is removed."""

    WAITING = "W"
    PROCESSING = "P"


class Priority:
    """Named priorities; the smallest is processed first."""

    NOW = 0
    IMPORTANT = 10
    NEW_PAGE = 20
    RESET = 50
    UPDATES = 180
    SLOW = 200
    REVIEW = 230
    TIME_ALLOWS = 255


@dataclass(frozen=True, slots=True)
class Packet:
    """One request for work on a key, with its sender's time. Times are in ms.

    Attributes:
        key: The stored form of the key.
        inserted: When it was sent.
        process: The earliest time at which it may be claimed.
        payload: Canonical JSON of the declared columns.
        priority: 0 to 255; the smallest is processed first.
        expires: After which it is deleted unprocessed; 0 is never.
        schema: The version of the declaration that the payload was checked with.
    """

    key: str
    inserted: int
    process: int
    payload: str
    priority: int = Priority.UPDATES
    expires: int = NEVER
    schema: int = 1


@dataclass(frozen=True, slots=True)
class Request:
    """The work requested for a key: one packet, or several merged ones. Times are in ms.

    Attributes:
        inserted: The time of the first packet.
        newest: The time of the newest packet, which the payload comes from.
        expires: The latest expiry of the packets; 0 is never.
        priority: The smallest priority of the packets.
        process: The earliest time at which it may be claimed.
        payload: The newest packet's payload, canonical JSON.
        schema: The version of the payload's columns.
    """

    inserted: int
    newest: int
    expires: int
    priority: int
    process: int
    payload: str
    schema: int


@dataclass(frozen=True, slots=True)
class Hint:
    """A row of ``due``: check this key at ``due_at``. It counts only while the key's entry refers to it.

    Attributes:
        id: Unique among all hints.
        key: The key to check.
        bucket: The bucket that holds the row.
        shard: The bucket's partition that holds the row.
        priority: The entry's priority.
        at: What due work is ordered by: the process time, the end of a claim or an expiry.
        due_at: The row's position in its partition; never before ``written``.
        written: When the row was written.
        version: The entry's version before the change that refers to the hint. Once the entry has a later
            version, no change will refer to it.
    """

    id: str
    key: str
    bucket: str
    shard: int
    priority: int
    at: int
    due_at: int
    written: int
    version: int = 0


class Ending(StrEnum):
    """How a claim ended."""

    DONE = "done"
    FAILED = "failed"
    LAPSED = "lapsed"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class LastClaim:
    """A key's newest ended claim, kept to explain ``ClaimLost`` to its holder."""

    token: str
    owner: str
    ended: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class Entry:
    """The state of one key. Times are in ms.

    Attributes:
        key: The stored form of the key.
        status: Waiting, or being processed.
        request: The work.
        timeouts: Lapsed claims since the payload changed.
        total_timeouts: Lapsed claims ever. Never reset, so that a key which is requested again and again and
            always times out is noticed.
        failures: Failed claims since the payload changed.
        error: The text of the last failure.
        token: The fencing token of the present claim.
        owner: The holder of the present claim.
        start: The start or last renewal of the last claim, also after its end.
        hint: The row of ``due`` that has the entry checked.
        successor: The request that arrived while the entry was being processed.
        claimed: When the present claim was made, regardless of renewals.
        ended: The token of the claim that this request was queued behind, so that its holder can repeat
            ``done``.
        last: The newest ended claim. No decision depends on it.
    """

    key: str
    status: Status
    request: Request
    timeouts: int = 0
    total_timeouts: int = 0
    failures: int = 0
    error: str | None = None
    token: str | None = None
    owner: str | None = None
    start: int | None = None
    hint: Hint | None = None
    successor: Request | None = None
    claimed: int | None = None
    ended: str | None = None
    last: LastClaim | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether no claim holds the entry."""
        return self.status is Status.WAITING

    def waiting(self) -> "Entry":
        """The entry without its claim; ``start`` is kept."""
        return replace(self, status=Status.WAITING, token=None, owner=None, claimed=None)

    @property
    def began(self) -> int | None:
        """When the last claim was made; after its end, its last renewal."""
        return self.start if self.claimed is None else self.claimed


class DeathReason(StrEnum):
    """Why an entry became a dead letter.

    Attributes:
        TIMEOUTS: Too many of its claims lapsed.
        FAILURES: Too many of its claims failed.
    """

    TIMEOUTS = "timeouts"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """A dead letter: a full copy of an entry that is not retried. ``identity`` is unique."""

    key: str
    reason: DeathReason
    request: Request
    timeouts: int
    total_timeouts: int
    failures: int
    error: str | None
    owner: str | None
    started: int
    died: int
    version: int = 0

    @property
    def identity(self) -> tuple[int, str, int]:
        """Identifies the letter, also where it was written more than once."""
        return self.started, self.key, self.version


@dataclass(frozen=True, slots=True)
class Seen:
    """That an operator has seen a dead letter.

    Attributes:
        by: The operator.
        at: When, in ms.
        reason: The operator's remark.
    """

    by: str
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class KeptLetter:
    """A dead letter as the archive stores it; ``seen`` is None until an operator has marked it."""

    letter: DeadEntry
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One ended claim: a row of the journal's history.

    Attributes:
        key: The stored form of the key.
        owner: The process that held the claim.
        token: The claim's fencing token.
        started: When it was claimed, in ms.
        ended: When the claim ended, in ms.
        ending: How it ended.
        error: The text of a failure.
        version: The entry's version when the claim ended; it distinguishes two runs of one key.
    """

    key: str
    owner: str
    token: str
    started: int
    ended: int
    ending: Ending
    error: str | None = None
    version: int = 0
