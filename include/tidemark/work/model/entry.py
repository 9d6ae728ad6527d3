"""What a work journal holds: one entry per key, waiting or being processed, and one request behind it.

Plain values. Times are milliseconds since 1970; an expiry of 0 is never. Nothing here reads a clock, a table
or a random number.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

LARGEST_PRIORITY = 255
LARGEST_COUNT = 255
"""Where the 8-bit counter of the contract stops counting: it never starts again at 0."""
NEVER = 0


class Status(StrEnum):
    """The two states that are ever stored; what is done is not there any more."""

    WAITING = "W"
    PROCESSING = "P"


class Priority:
    """The priorities that have a name; smaller is sooner."""

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
    """One request to do something about a key, as its sender dated it. Times are in ms.

    Attributes:
        key: What is to be worked on.
        inserted: When it was sent.
        process: The earliest time at which it may be claimed.
        payload: JSON, as the declaration describes it.
        priority: The smallest comes first.
        expires: When it is not wanted any more.
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
    """What is to be done for a key: one packet, or what several of them came to."""

    inserted: int
    newest: int
    """The date of the newest packet in it, whose payload it has."""
    expires: int
    priority: int
    process: int
    payload: str
    schema: int


@dataclass(frozen=True, slots=True)
class Hint:
    """A row of ``due`` that says: look at this key at ``due_at``. Only the entry that names it decides."""

    id: str
    key: str
    bucket: str
    shard: int
    priority: int
    at: int
    """What the order of work goes by: the process date, the end of a claim or an expiry."""
    due_at: int
    """Where the row stands: never before the moment it was written."""
    written: int
    version: int = 0
    """The version of the entry that was to be changed: once that is passed, nobody comes to name the hint."""


class Ending(StrEnum):
    """How a claim came to its end."""

    DONE = "done"
    FAILED = "failed"
    LAPSED = "lapsed"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class LastClaim:
    """The newest claim of a key that has ended: what a late caller with its token is told."""

    token: str
    owner: str
    ended: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class Entry:
    """The authority about one key."""

    key: str
    status: Status
    request: Request
    timeouts: int = 0
    total_timeouts: int = 0
    """Never reset, so that a key which is asked for again and again and always times out is noticed."""
    failures: int = 0
    error: str | None = None
    token: str | None = None
    owner: str | None = None
    start: int | None = None
    """Of the last claim, also when that is over; a refresh moves it."""
    hint: Hint | None = None
    successor: Request | None = None
    """What was asked for while the entry was being processed."""
    claimed: int | None = None
    """When the claim was made, however often it was refreshed since."""
    ended: str | None = None
    """The token of the claim that this request waited behind: its holder may say again that it is done."""
    last: LastClaim | None = None
    """The claim before the present one, or before none; nothing is decided by it."""

    @property
    def is_waiting(self) -> bool:
        """Whether nobody has claimed it."""
        return self.status is Status.WAITING

    def waiting(self) -> "Entry":
        """The same without its claim; the start of the last one stays."""
        return replace(self, status=Status.WAITING, token=None, owner=None, claimed=None)

    @property
    def began(self) -> int | None:
        """When the last claim was made; its last refresh where only that was noted."""
        return self.start if self.claimed is None else self.claimed


class DeathReason(StrEnum):
    """Why an entry left the journal undone.

    Attributes:
        TIMEOUTS: Too many of its claims lapsed.
        FAILURES: Too many of its claims failed.
    """

    TIMEOUTS = "timeouts"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """A full copy of an entry that was given up; ``started`` and ``version`` tell it from any other."""

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
        """Of a dead letter, however often it was written."""
        return self.started, self.key, self.version


@dataclass(frozen=True, slots=True)
class Seen:
    """Which person looked at a dead letter.

    Attributes:
        by: The person.
        at: When, in ms.
        reason: What they said about it.
    """

    by: str
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class KeptLetter:
    """A dead letter as the archive has it: with the person who looked at it, None if there was none."""

    letter: DeadEntry
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One claim from its start to its end: a line of the journal's history.

    Attributes:
        key: What was worked on.
        owner: The process that held the claim.
        token: The claim's fencing token.
        started: When it was claimed, in ms.
        ended: When the claim ended, in ms.
        ending: How it ended.
        error: What a failure said.
        version: The entry's version when the claim ended: tells two runs of one key apart.
    """

    key: str
    owner: str
    token: str
    started: int
    ended: int
    ending: Ending
    error: str | None = None
    version: int = 0
