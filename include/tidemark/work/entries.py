"""Entries, each of them the authority about its key, through compare-and-set.

The object is named by the journal and a 16-byte hash of the key, its rows by the keys themselves: two keys of
one hash are two entries that only share a version. No entry is ever written without its version having been
read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from tidemark.consensus.objects import Change, Consensus, Kind, ObjectKey
from tidemark.work.entry import Entry, Hint

HASH_BYTES = 16
_to_entry: Callable[[str], Entry] = msgspec.json.Decoder(Entry).decode
_to_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as it was at one version; None where there is none."""

    entry: Entry | None
    version: int

    def names(self, hint: Hint) -> bool:
        """Whether this is the hint by which the entry is found."""
        return self.entry is not None and self.entry.hint is not None and self.entry.hint.id == hint.id

    def will_name(self, hint: Hint, now: int, settle: int) -> bool:
        """Whether somebody may still be about to make it so.

        Who wrote the hint changes the version that it was written for, and nothing once that is passed. One
        who has died in between is waited for no longer than ``settle``.
        """
        return self.version <= hint.version and now - hint.written <= settle


def key_hash(key: str) -> str:
    """The name under which a key's entry is found."""
    return blake2b(key.encode(), digest_size=HASH_BYTES).hexdigest()


def entry_of(body: str) -> Entry:
    """An entry from a row's text."""
    return _to_entry(body)


def body_of(entry: Entry) -> str:
    """The text of an entry's row."""
    return _to_json(entry).decode()


class Entries:
    """The entries of one journal."""

    def __init__(self, consensus: Consensus, journal: str, hashed: Callable[[str], str] = key_hash) -> None:
        self._consensus, self._journal, self._hashed = consensus, journal, hashed

    def read(self, key: str) -> Stored:
        """What is there, expired or not."""
        snapshot = self._consensus.whole(self._object(key))
        body = snapshot.rows.get(key)
        return Stored(None if body is None else entry_of(body), snapshot.version)

    def write(self, key: str, version: int, entry: Entry | None) -> Stored:
        """Replace or remove the entry if nobody has changed it since; raises as ``Consensus.commit``."""
        change = Change(deletes=[key]) if entry is None else Change({key: body_of(entry)})
        return Stored(entry, self._consensus.commit(self._object(key), version, change))

    def hash_of(self, key: str) -> str:
        """The name under which a key's entry is found."""
        return self._hashed(key)

    def _object(self, key: str) -> ObjectKey:
        return ObjectKey(Kind.WORK_ENTRY, f"{self._journal}/{self._hashed(key)}")
