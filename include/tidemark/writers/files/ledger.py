"""The ledger of a files writer: name, size and digest of every file it created, stored in the log's folder.

Not stored beside the files: whatever removes them would remove the ledger too. The names of the records hold
everything, so that one listing reads the whole ledger. A record is durable before the position passes its
binding. Nothing is repaired here, and nothing is removed from the target.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256

from tidemark.log.files.folder import Folder

UNKNOWN = "unknown"
ADOPTED = "adopted"
LOST = "lost"
_MADE = re.compile(
    r"(?P<name>(?P<base>\d{20})-(?P<end>\d{20})\.[a-z]+)\.(?P<bytes>\d+)\.(?P<digest>[0-9a-z]+)"
)
_LOST = re.compile(rf"(?P<name>\d{{20}}-\d{{20}}\.[a-z]+)\.{LOST}")
_NAME = re.compile(r"(?P<base>\d{20})-(?P<end>\d{20})\.[a-z]+")


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file as the writer created it.

    Attributes:
        name: The file's name.
        bytes: Its size.
        digest: Its SHA-256; None for a file of an older version, of which only the size is known.
    """

    name: str
    bytes: int
    digest: str | None

    @property
    def record(self) -> str:
        """The name of its record in the ledger."""
        return f"{self.name}.{self.bytes}.{self.digest or UNKNOWN}"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A file that an operator has given up.

    Attributes:
        name: The file's name.
        who: The operator.
        reason: Why.
        at: When, in µs.
    """

    name: str
    who: str
    reason: str
    at: int


@dataclass(frozen=True, slots=True)
class Made:
    """The ledger of one writer.

    Attributes:
        files: The records by file name. A file has several where another version created it again: same
            messages, other bytes.
        lost: The files that an operator has given up.
        is_adopted: Whether the files of an older version were inspected and recorded.
    """

    files: Mapping[str, frozenset[MadeFile]]
    lost: frozenset[str] = frozenset()
    is_adopted: bool = False

    def between(self, first_id: int, last_id: int) -> dict[str, frozenset[MadeFile]]:
        """The files of the bindings between two ids, sorted, without those that were given up."""
        return {
            name: versions
            for name, versions in sorted(self.files.items())
            if name not in self.lost and first_id <= ids_of(name)[0] and ids_of(name)[1] <= last_id
        }


def ids_of(name: str) -> tuple[int, int]:
    """The first and the last id of a file's binding."""
    found = _NAME.fullmatch(name)
    if not found:
        raise ValueError(f"{name} is no name of a binding's file")
    return int(found["base"]), int(found["end"])


class FilesLedger:
    """The records of one writer's files in one target."""

    def __init__(self, pipeline: str, writer: str, root: str, target: str) -> None:
        # A writer may be forgotten and registered again under its name with another target.
        self._area = f"outputs/{writer}-{sha256(target.encode()).hexdigest()[:8]}"
        self._folder = Folder(pipeline, root)

    def note(self, made: MadeFile) -> None:
        """Record a file. Idempotent."""
        path = posixpath.join(self._area, made.record)
        if not self._folder.exists(path):
            self._folder.write_once(path, _line(asdict(made)))

    def note_adopted(self, position: int) -> None:
        """Record that the files of an older version were inspected, up to a position."""
        self._folder.replace(posixpath.join(self._area, ADOPTED), _line({"position": position}))

    def give_up(self, lost: GivenUp) -> None:
        """Record that an operator has given a file up."""
        self._folder.replace(posixpath.join(self._area, f"{lost.name}.{LOST}"), _line(asdict(lost)))

    def read(self) -> Made:
        """The whole ledger."""
        files: dict[str, set[MadeFile]] = {}
        names = list(self._names())
        for record in names:
            if found := _MADE.fullmatch(record):
                digest = None if found["digest"] == UNKNOWN else found["digest"]
                one = MadeFile(found["name"], int(found["bytes"]), digest)
                files.setdefault(one.name, set()).add(one)
        lost = frozenset(found["name"] for record in names if (found := _LOST.fullmatch(record)))
        return Made({name: frozenset(one) for name, one in files.items()}, lost, ADOPTED in names)

    def _names(self) -> Iterator[str]:
        return (posixpath.basename(path) for path in self._folder.list_files(self._area, ""))


def _line(body: Mapping[str, object]) -> bytes:
    return (json.dumps(body, sort_keys=True) + "\n").encode()
