"""The entries of a journal, stored by compare-and-set.

An object is named by the journal and a 16-byte hash of the key, its rows by the keys: two keys with the same
hash are two entries that share a version. A removed entry is overwritten by a trace with the time of its
removal; the whole object is deleted later. Nothing is written without the version that was read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from tidemark.consensus.objects import ABSENT, Change, Consensus, ObjectKey, ObjectKind, Outpaced, Snapshot
from tidemark.work.model.decision import Gone
from tidemark.work.model.entry import Entry, Hint

HASH_BYTES = 16
NOTHING = Snapshot(ABSENT, {})
GONE = "gone "
"""The prefix of a trace, followed by its time and its JSON. The text of an entry is JSON only."""
GONE_FOR = 86_400_000
"""Milliseconds for which a trace is kept: no process commits a change to a value read that long ago."""
_to_entry: Callable[[str], Entry] = msgspec.json.Decoder(Entry).decode
_to_gone: Callable[[str], Gone] = msgspec.json.Decoder(Gone).decode
_to_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored value of a key at one version. ``entry`` is None where there is no entry."""

    entry: Entry | None
    version: int
    gone: Gone | None = None
    """The trace of the removed entry; None where the entry exists or never existed."""

    def names(self, hint: Hint) -> bool:
        """Whether the entry refers to this hint."""
        return self.entry is not None and self.entry.hint is not None and self.entry.hint.id == hint.id

    def waits_for(self, hint: Hint) -> bool:
        """Whether the entry refers to this hint and is not claimed."""
        return self.names(hint) and self.entry is not None and self.entry.is_waiting

    def will_name(self, hint: Hint, now: int, settle: int) -> bool:
        """Whether a process may still commit an entry that refers to this hint.

        The process that wrote the hint commits only to the version that is stored in the hint. It has at most
        ``settle`` ms for that; afterwards it counts as crashed.
        """
        return self.version <= hint.version and now - hint.written <= settle


def key_hash(key: str) -> str:
    """The hash of a key, by which its object is named."""
    return blake2b(key.encode(), digest_size=HASH_BYTES).hexdigest()


def entry_of(body: str) -> Entry:
    """An entry from a row's text."""
    return _to_entry(body)


def body_of(entry: Entry) -> str:
    """The text of an entry's row."""
    return _to_json(entry).decode()


def gone_of(body: str) -> Gone:
    """The trace in a row's text."""
    at, _, more = body.removeprefix(GONE).partition(" ")
    return _to_gone(more) if more else Gone(int(at))


def gone_body(gone: Gone) -> str:
    """The text of a trace's row."""
    return f"{GONE}{gone.at} {_to_json(gone).decode()}"


def is_long_gone(body: str, now: int) -> bool:
    """Whether the row is a trace that is old enough to delete."""
    return body.startswith(GONE) and now - gone_of(body).at > GONE_FOR


class Entries:
    """The entries of one journal."""

    def __init__(self, consensus: Consensus, journal: str, hashed: Callable[[str], str] = key_hash) -> None:
        self._consensus, self._journal, self._hashed = consensus, journal, hashed

    def read(self, key: str) -> Stored:
        """The stored value of a key, expired or not."""
        return self._stored(key, self._consensus.whole(self._object(key)))

    def recent(self, keys: Iterable[str]) -> dict[str, Stored]:
        """The stored values of keys, possibly a moment old; see ``Consensus.recent``."""
        names = {key: self._object(key).name for key in keys}
        found = self._consensus.recent(ObjectKind.WORK_ENTRY, sorted(set(names.values())))
        return {key: self._stored(key, found.get(name, NOTHING)) for key, name in names.items()}

    def write(self, key: str, version: int, now: Entry | Gone) -> Stored:
        """Replaces or removes the entry if its version is unchanged. Raises as ``Consensus.commit``."""
        if isinstance(now, Gone):
            change = Change({key: gone_body(now)})
            return Stored(None, self._consensus.commit(self._object(key), version, change), now)
        change = Change({key: body_of(now)})
        return Stored(now, self._consensus.commit(self._object(key), version, change))

    def forget(self, hashed: str, now: int, *, execute: bool = True) -> bool:
        """Deletes the object of a key's hash. Returns False where it has more than old traces, or changed."""
        key = ObjectKey(ObjectKind.WORK_ENTRY, f"{self._journal}/{hashed}")
        found = self._consensus.whole(key)
        if found.version == ABSENT or not all(is_long_gone(body, now) for body in found.rows.values()):
            return False
        try:
            if execute:
                self._consensus.forget(key, found.version)
        except Outpaced:
            return False
        return True

    def hash_of(self, key: str) -> str:
        """See ``key_hash``."""
        return self._hashed(key)

    def _stored(self, key: str, snapshot: Snapshot) -> Stored:
        body = snapshot.rows.get(key)
        if body is None or body.startswith(GONE):
            return Stored(None, snapshot.version, None if body is None else gone_of(body))
        return Stored(entry_of(body), snapshot.version)

    def _object(self, key: str) -> ObjectKey:
        return ObjectKey(ObjectKind.WORK_ENTRY, f"{self._journal}/{self._hashed(key)}")
