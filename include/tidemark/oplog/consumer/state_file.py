"""The state file of a consumer: its position, so that it continues there after a restart.

One line, the id; a second line ``reset`` while a full replication has begun that the consumer has not acted
upon. Replaced atomically and durable before ``save`` returns. Never guesses: a file without content, or with
another content, is an error, because to begin somewhere else would leave a gap. A lock file beside it keeps
a second consumer out.
"""

import fcntl
import os
import re
from pathlib import Path

from tidemark.faults import FaultPoint, reach
from tidemark.oplog.consumer.decoding import LONGEST_ID
from tidemark.oplog.consumer.errors import (
    PositionNotSaved,
    StateFileDamaged,
    StateFileEmpty,
    StateFileInUse,
    StateFileUnusable,
)
from tidemark.oplog.consumer.in_flight import Position

RESET = "reset"
_CONTENT = re.compile(rb"([\x21-\x7e]{1,%d})\n(%s\n)?" % (LONGEST_ID, RESET.encode()))


class StateFile:
    """A state file that this consumer has locked."""

    def __init__(self, path: Path, lock: int) -> None:
        """Use ``StateFile.open``."""
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "StateFile":
        """Locks a state file, which need not exist. Raises ``StateFileInUse`` and ``StateFileUnusable``."""
        found = Path(path).resolve()  # two names of one file are one lock, and a link stays a link
        try:
            lock = os.open(
                found.with_name(f"{found.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise StateFileUnusable(str(found), error.strerror or str(error)) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise StateFileInUse(str(found)) from None
        except OSError as error:
            os.close(lock)
            raise StateFileUnusable(str(found), error.strerror or str(error)) from None
        return cls(found, lock)

    def load(self) -> Position | None:
        """The position; None where there is no file.

        Raises:
            StateFileEmpty: It has no content.
            StateFileDamaged: It has something else than a position.
            StateFileUnusable: It cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                content = file.read(2 * LONGEST_ID)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateFileUnusable(str(self.path), error.strerror or str(error)) from None
        if not content.strip():
            raise StateFileEmpty(str(self.path))
        found = _CONTENT.fullmatch(content)
        if found is None:
            ends = content.endswith(b"\n")
            problem = "it is not one line with an id" if ends else "its last line has no end, so it was cut"
            raise StateFileDamaged(str(self.path), problem)
        return Position(found[1].decode("ascii"), reset=found[2] is not None)

    def save(self, position: Position) -> None:
        """Makes a position durable. Raises ``PositionNotSaved``; the file is then as before."""
        mark = f"{RESET}\n" if position.reset else ""
        draft = self.path.with_name(f"{self.path.name}.new")  # one name: the lock keeps others out
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), "w") as file:
                file.write(f"{position.event_id}\n{mark}")
                file.flush()
                os.fsync(file.fileno())
            reach(FaultPoint.STATE_FILE_WRITTEN)
            draft.replace(self.path)
            reach(FaultPoint.STATE_FILE_NAMED)
            _sync_folder(self.path.parent)
            reach(FaultPoint.STATE_FILE_DURABLE)
        except OSError as error:
            raise PositionNotSaved(str(self.path), error.strerror or str(error)) from None

    def close(self) -> None:
        """Lets another consumer use the file."""
        os.close(self._lock)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
