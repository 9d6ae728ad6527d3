"""Errors of batches: whether to retry, how to back off, and the error when retries are exhausted.

For idempotent statements only. Nothing here waits or sends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from random import uniform

from cassandra import InvalidRequest, OperationTimedOut, ReadFailure, Timeout, Unavailable, WriteFailure
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.protocol import (
    CDCWriteException,
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    TruncateError,
)

from tidemark.cassandra.errors import CassandraError
from tidemark.errors import with_fields

_OVERLOAD = (OverloadedErrorMessage, Timeout, OperationTimedOut)
_PASSING = (
    CDCWriteException,
    ConnectionBusy,
    ConnectionException,
    IsBootstrappingErrorMessage,
    NoHostAvailable,
    ReadFailure,
    ServerError,
    TruncateError,
    Unavailable,
    WriteFailure,
)
_TOO_LARGE = ("Batch too large", "exceeds allowed maximum", "oversized mutation")


class RetryDecision(Enum):
    """What to do with a batch after an error."""

    AGAIN = auto()
    SLOWER = auto()
    """Again, with fewer batches in flight."""
    SMALLER = auto()
    """Again, split in two."""
    NEVER = auto()


def judge(error: Exception) -> RetryDecision:
    """How to go on after an error of the driver or of the server."""
    if isinstance(error, _OVERLOAD):
        return RetryDecision.SLOWER
    if isinstance(error, _PASSING):
        return RetryDecision.AGAIN
    if isinstance(error, InvalidRequest) and any(words in str(error) for words in _TOO_LARGE):
        return RetryDecision.SMALLER
    return RetryDecision.NEVER


def describe(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, NoHostAvailable):
        return "; ".join(sorted({describe(each) for each in error.errors.values()})) or "no node is up"
    return f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a batch is retried, with exponential back-off and a jitter of a quarter."""

    most: int = 5
    first_pause: float = 0.5
    """In seconds. Five pauses add up to 15 s, 20 s at most."""
    jitter: Callable[[float, float], float] = uniform

    def pause(self, failures: int) -> float:
        """Seconds to wait after this many failures of the same batch."""
        return self.first_pause * 2.0 ** (failures - 1) * self.jitter(0.75, 1.25)


class Allowance:
    """The limit of batches in flight: halved by an overload, one more after a full round without."""

    def __init__(self, most: int) -> None:
        self.now = self._most = most
        self._answered = self._halved_at = 0

    def answered(self) -> None:
        """Count an acknowledged batch."""
        self._answered += 1
        if self._answered >= self.now:
            self.now, self._answered = min(self.now + 1, self._most), 0

    def overloaded(self, number: int, newest: int) -> None:
        """Lower the limit: batch ``number`` met an overload when ``newest`` was the last one sent."""
        # Batches in flight at the same time meet the same overload: it counts once.
        if number > self._halved_at:
            self.now, self._answered, self._halved_at = max(self.now // 2, 1), 0, newest


@with_fields
class BulkFailed(CassandraError):
    """Rows that Cassandra did not acknowledge, after every attempt that made sense."""

    tables: tuple[str, ...]
    rows: int
    attempts: int
    cause: str
    refused: bool

    def __post_init__(self) -> None:
        self.needs_person = self.refused
        super().__post_init__()

    def __str__(self) -> str:
        names = ", ".join(self.tables)
        what = "a row" if self.rows == 1 else f"a batch of {self.rows} rows"
        if self.refused:
            return (
                f"{names}: Cassandra refuses {what} ({self.cause}). Nothing of it counts as written, and "
                "nothing was sent after it. Correct the table or what is written to it, then run the same "
                "again."
            )
        return (
            f"{names}: {what} was not acknowledged in {self.attempts} attempts ({self.cause}). It may "
            "be there in part, and nothing was sent after it. See that Cassandra's nodes are up and "
            "not overloaded, then run the same again: what is there already does no harm."
        )
