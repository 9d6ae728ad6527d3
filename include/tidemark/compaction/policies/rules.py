"""The rules of one compaction: everything that decides, beside the messages themselves. Pure values."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from tidemark.log.model.manifest import LogFile, Manifest, Segment


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """What makes a message obsolete, and below which id."""

    policy: str
    watermark: int
    segment_bytes: int
    pins: tuple[int, ...] = ()
    """Ids that stay, in order."""
    acknowledged: tuple[int, ...] = ()
    """Ids below the watermark that a person let pass unwritten, in order; only a journal asks."""
    tombstones_before: int = 0
    """Tombstones bound before this time (µs) go; only ``latest`` asks."""
    last_eligible: int = -1
    """The last message below the watermark: it stays, except in a journal, which knows its own end."""
    recreated: tuple[tuple[str, int], ...] = ()
    """The first id of every topic that was made again under its name, in order: offsets begin anew there, so
    its entities are others than those before; only a journal asks."""

    def beginnings(self, topic: str) -> tuple[int, ...]:
        """The first ids of the topics that have had this name, but for the first of them."""
        return tuple(first_id for name, first_id in self.recreated if name == topic)

    def to_row(self) -> dict[str, Any]:
        """The rules as digests and plans have them."""
        row = asdict(self)
        if not self.recreated:  # as it was before there were any: the digests stay the same
            del row["recreated"]
        return row

    @property
    def kept_ids(self) -> tuple[int, ...]:
        """The ids that stay whatever the policy says, in order."""
        return tuple(sorted({*self.pins, self.last_eligible} - {-1}))

    def is_eligible(self, file: LogFile) -> bool:
        """Whether something in the file may go."""
        return file.first_id < self.watermark


def inactive_segments(manifest: Manifest) -> tuple[Segment, ...]:
    """All segments but the active one, which compaction never looks at."""
    return manifest.segments[:-1]


def candidates(manifest: Manifest) -> tuple[LogFile, ...]:
    """The files of inactive segments, in the order of partition and id.

    Also those above the watermark: nothing in them goes, but small ones may become one.
    """
    files = (file for segment in inactive_segments(manifest) for file in segment.files)
    return tuple(sorted(files, key=lambda file: (file.topic, file.partition, file.first_id)))


def question_digest(pipeline: str, files: Iterable[LogFile], rules: CompactionRules) -> str:
    """The same files and the same rules: the same answer, in the same files of the same bytes."""
    asked = {
        "pipeline": pipeline,
        "inputs": [[file.path, file.digest] for file in files],
        "rules": rules.to_row(),
    }
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
