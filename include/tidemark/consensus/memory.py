"""Consensus in memory: for tests, and for a control plane that does not exist. Nothing survives the
process.
"""

from collections.abc import Mapping, Sequence
from threading import Lock

from tidemark.consensus.objects import ABSENT, Change, ObjectKey, ObjectKind, Outpaced, Snapshot


class MemoryConsensus:
    """``Consensus`` on a dictionary, guarded by a lock. Pickled as a copy of what it holds at that time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._objects: dict[ObjectKey, Snapshot] = {}

    def __getstate__(self) -> dict[ObjectKey, Snapshot]:
        with self._lock:
            return dict(self._objects)

    def __setstate__(self, objects: dict[ObjectKey, Snapshot]) -> None:
        self._lock, self._objects = Lock(), objects

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """See ``Consensus.read``."""
        whole = self._whole(key)
        return Snapshot(whole.version, {name: whole.rows[name] for name in rows if name in whole.rows})

    def whole(self, key: ObjectKey) -> Snapshot:
        """See ``Consensus.whole``."""
        return self._whole(key)

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        """See ``Consensus.recent``."""
        found = {name: self._whole(ObjectKey(kind, name)) for name in names}
        return {name: snapshot for name, snapshot in found.items() if snapshot.version != ABSENT}

    def committed(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """See ``Consensus.committed``."""
        return self.read(key, rows)

    def scan(self, key: ObjectKey, prefix: str, *, before: str | None = None, limit: int = 1000) -> Snapshot:
        """See ``Consensus.scan``."""
        whole = self._whole(key)
        names = sorted(n for n in whole.rows if n.startswith(prefix) and (before is None or n < before))[
            -limit:
        ]
        return Snapshot(whole.version, {name: whole.rows[name] for name in names})

    def names(self, kind: ObjectKind, prefix: str = "") -> list[str]:
        """See ``Consensus.names``."""
        with self._lock:
            return sorted(
                key.name for key in self._objects if key.kind is kind and key.name.startswith(prefix)
            )

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        """See ``Consensus.commit``."""
        with self._lock:
            whole = self._whole(key)
            if whole.version != expected:
                raise Outpaced(key, expected, whole.version)
            self._objects[key] = Snapshot(expected + 1, change.applied_to(whole.rows))
            return expected + 1

    def forget(self, key: ObjectKey, expected: int) -> None:
        """See ``Consensus.forget``."""
        with self._lock:
            if (found := self._whole(key).version) != expected:
                raise Outpaced(key, expected, found)
            self._objects.pop(key, None)

    def _whole(self, key: ObjectKey) -> Snapshot:
        return self._objects.get(key, Snapshot(ABSENT, {}))
