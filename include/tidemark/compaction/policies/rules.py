"""The rules of one compaction: everything that its result depends on, beside the messages. Pure values."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from tidemark.log.model.manifest import LogFile, Manifest, Segment


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """What makes a message obsolete, and below which id.

    Attributes:
        pins: The pinned ids below the watermark, in order.
        acknowledged: The ids below the watermark that an operator acknowledged, in order; only for
            ``journal`` and ``oplog``.
        tombstones_before: Tombstones bound before this time (µs) are dropped; only for policies that drop
            tombstones.
        last_eligible: The last id below the watermark, which is kept; −1 for ``journal``, which does not need
            it.
        recreated: Topic and first id of every topic that was created again, in order. Its entities are other
            ones than those before, and its offsets begin anew; only for ``journal`` and ``oplog``.
        topic_ids: Topic and Kafka's id of every topic, in the order of their first ids; only for ``oplog``.
    """

    policy: str
    watermark: int
    segment_bytes: int
    pins: tuple[int, ...] = ()
    acknowledged: tuple[int, ...] = ()
    tombstones_before: int = 0
    last_eligible: int = -1
    recreated: tuple[tuple[str, int], ...] = ()
    topic_ids: tuple[tuple[str, str], ...] = ()

    def beginnings(self, topic: str) -> tuple[int, ...]:
        """The first ids of the topic's incarnations, except the first one."""
        return tuple(first_id for name, first_id in self.recreated if name == topic)

    def topic_ids_of(self, topic: str) -> tuple[str, ...]:
        """Kafka's ids of the topic's incarnations, the first one included; ``""`` where one is not known."""
        known = tuple(id_ for name, id_ in self.topic_ids if name == topic)
        return known or ("",) * (len(self.beginnings(topic)) + 1)

    def to_row(self) -> dict[str, Any]:
        """The rules in digests and plans."""
        row = asdict(self)
        for name in ("recreated", "topic_ids"):
            if not row[name]:  # older versions have no such field, and digests must not change
                del row[name]
        return row

    @property
    def kept_ids(self) -> tuple[int, ...]:
        """The ids that every policy keeps, in order."""
        return tuple(sorted({*self.pins, self.last_eligible} - {-1}))

    def is_eligible(self, file: LogFile) -> bool:
        """Whether the file has messages below the watermark."""
        return file.first_id < self.watermark


def inactive_segments(manifest: Manifest) -> Iterator[Segment]:
    """All segments but the active one, which compaction never reads."""
    return (manifest.segment_of(leaf) for leaf in manifest.leaves())


def candidates(manifest: Manifest) -> tuple[LogFile, ...]:
    """The files of inactive segments, sorted by partition and id.

    Files above the watermark are included: nothing in them is dropped, but small ones may be merged.
    """
    files = (file for segment in inactive_segments(manifest) for file in segment.files)
    return tuple(sorted(files, key=lambda file: (file.topic, file.partition, file.first_id)))


def question_digest(pipeline: str, files: Iterable[LogFile], rules: CompactionRules) -> str:
    """The digest of files and rules. Equal digests mean equal plans, and new files with equal bytes."""
    asked = {
        "pipeline": pipeline,
        "inputs": [[file.path, file.digest] for file in files],
        "rules": rules.to_row(),
    }
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
