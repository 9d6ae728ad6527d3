"""Which corrections of one partition are void, for a reader that began somewhere in the middle of it.

A correction is void where a valid operation of the same object lies between what its sender had looked at
and itself. A reader knows the operations since it began. It meets few corrections that reach back further;
then it says how far, is told what was there, and judges as every other reader does. What reaches back further
still is asked for in the same way: whether an earlier correction was valid may matter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from hashlib import blake2b
from typing import NamedTuple

from tidemark.operations.corrections import FARTHEST, Correction, is_void

_LONGEST_KEY = 64


class EarlierOperation(NamedTuple):
    """An operation that was read while looking back; its key is a ``short_key``."""

    offset: int
    key: bytes
    correction: Correction | None


class _Status(Enum):
    VALID = auto()
    VOID = auto()
    UNKNOWN = auto()


@dataclass(slots=True)
class _Earlier:
    """An operation before the beginning of the reader, with the status that is known of it."""

    offset: int
    correction: Correction | None


class CorrectionWindow:
    """The operations of one partition that a reader knows.

    Attributes:
        known_from: The first offset from which on every operation is known.
    """

    def __init__(self, topic_id: str, first: int) -> None:
        """``first`` is where the reader begins."""
        self._topic_id = topic_id
        self._judged_from = self.known_from = first
        self._last_valid: dict[bytes, int] = {}
        self._earlier: dict[bytes, list[_Earlier]] = {}
        self._prune_at = first + 2 * FARTHEST

    def missing(self, offset: int, key: bytes, correction: Correction) -> int | None:
        """The first offset that has to be known before a correction can be judged; None where it can be."""
        status, needed = self._judge(offset, short_key(key), correction)
        return needed if status is _Status.UNKNOWN else None

    def note(self, offset: int, key: bytes, correction: Correction | None) -> bool:
        """The next operation: whether it is valid. For a correction nothing may be missing."""
        name = short_key(key)
        if offset >= self._prune_at:
            self._prune(offset)
        if correction is not None:
            status, _ = self._judge(offset, name, correction)
            if status is _Status.UNKNOWN:
                raise ValueError(f"offset {offset} is judged before what it depends on is known")
            if status is _Status.VOID:
                return False
        self._last_valid[name] = offset
        return True

    def look_back(self, first: int, operations: Iterable[EarlierOperation]) -> None:
        """The operations from ``first`` to ``known_from``, which is ``first`` from now on."""
        found: dict[bytes, list[_Earlier]] = {}
        for offset, key, correction in operations:
            found.setdefault(key, []).append(_Earlier(offset, correction))
        for name, earlier in found.items():
            self._earlier[name] = earlier + self._earlier.get(name, [])
        self.known_from = min(first, self.known_from)

    def _judge(self, offset: int, name: bytes, correction: Correction) -> tuple[_Status, int]:
        """The status of a correction, and the first offset that is missing where it is unknown."""
        last, looked_at = self._last_valid.get(name), correction.looked_at
        if is_void(correction, offset, self._topic_id, last):
            return _Status.VOID, 0
        if looked_at >= self._judged_from:
            return _Status.VALID, 0
        return self._judge_by(name, looked_at, self._earlier.get(name, []))

    def _judge_by(self, name: bytes, looked_at: int, earlier: list[_Earlier]) -> tuple[_Status, int]:
        """A correction that no later operation makes void, by the earlier ones of its object."""
        judged: list[tuple[int, _Status]] = []
        for one in earlier:
            judged.append((one.offset, self._status_of(one, judged)))
        status, reach = self._status_after(judged, looked_at), looked_at
        for one, (_, found) in zip(reversed(earlier), reversed(judged), strict=True):
            if found is _Status.UNKNOWN and one.offset >= reach and one.correction is not None:
                reach = min(reach, one.correction.looked_at)
        return status, reach

    def _status_of(self, one: _Earlier, judged: list[tuple[int, _Status]]) -> _Status:
        if one.correction is None:
            return _Status.VALID
        if is_void(one.correction, one.offset, self._topic_id, None):
            return _Status.VOID
        return self._status_after(judged, one.correction.looked_at)

    def _status_after(self, judged: list[tuple[int, _Status]], looked_at: int) -> _Status:
        """The status of a correction after earlier operations of its object."""
        reached = [status for offset, status in judged if offset >= looked_at]
        if _Status.VALID in reached:
            return _Status.VOID
        if _Status.UNKNOWN in reached or looked_at < self.known_from:
            return _Status.UNKNOWN
        return _Status.VALID

    def _prune(self, offset: int) -> None:
        """Forget what no later correction can reach."""
        horizon = offset - FARTHEST
        self._last_valid = {name: last for name, last in self._last_valid.items() if last >= horizon}
        if self._judged_from <= horizon:
            self._earlier = {}
        self._prune_at = offset + FARTHEST


def short_key(key: bytes) -> bytes:
    """A key as it is remembered: long ones as their hash, so that memory is bounded."""
    return key if len(key) <= _LONGEST_KEY else b"\0" + blake2b(key).digest()
