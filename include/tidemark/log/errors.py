"""Errors of the commit log: each names the thing it is about and what to do next."""

from tidemark.errors import TidemarkError


class LogError(TidemarkError):
    """Something is wrong with a log, a binding or a file, and nothing was made visible because of it."""


class BadBinding(LogError):
    """A binding that cannot be: it contradicts itself or the one before it."""


class ManifestDamaged(LogError):
    """The manifest's bytes are not those that the control row promised."""

    def __init__(self, pipeline: str, path: str, expected: str, found: str) -> None:
        super().__init__(
            f"{pipeline}: manifest {path} is damaged (digest {found[:12]} instead of {expected[:12]}). "
            "Nothing was read from it. Restore the file from a backup of the log folder."
        )
        self.pipeline, self.path, self.expected, self.found = pipeline, path, expected, found


class FileDamaged(LogError):
    """A log file's bytes are not those that were recorded."""

    def __init__(self, pipeline: str, path: str, expected: str, found: str) -> None:
        super().__init__(
            f"{pipeline}: log file {path} is damaged (digest {found[:12]} instead of {expected[:12]}). "
            "Nothing was delivered from it. Restore the file from a backup of the log folder."
        )
        self.pipeline, self.path, self.expected, self.found = pipeline, path, expected, found


class FileMissing(LogError):
    """A file that the log names is not there."""

    def __init__(self, pipeline: str, path: str) -> None:
        super().__init__(
            f"{pipeline}: {path} is missing, but the log names it. Nothing was delivered from it. "
            "Restore the file from a backup of the log folder."
        )
        self.pipeline, self.path = pipeline, path


class RecordsMissing(LogError):
    """Kafka did not give the records that a binding owns."""

    def __init__(self, pipeline: str, topic: str, partition: int, lower: int, upper: int, found: str) -> None:
        super().__init__(
            f"{pipeline}: {topic}/{partition} was bound from offset {lower} up to {upper}, but {found}. "
            "Nothing was published. Look at the topic's retention, then clear the capture task to try again."
        )
        self.pipeline, self.topic, self.partition = pipeline, topic, partition
        self.lower, self.upper = lower, upper


class RangeWrong(LogError):
    """A log file does not hold the ids that its manifest says."""

    def __init__(
        self, pipeline: str, path: str, expected: tuple[int, int, int], found: tuple[int, int, int]
    ) -> None:
        super().__init__(
            f"{pipeline}: {path} holds ids {found[0]} to {found[1]} in {found[2]} messages, but the manifest "
            f"says {expected[0]} to {expected[1]} in {expected[2]}."
        )
        self.pipeline, self.path, self.expected, self.found = pipeline, path, expected, found


class FolderUnusable(LogError):
    """A folder cannot be written."""

    def __init__(self, pipeline: str, path: str, reason: str) -> None:
        super().__init__(
            f"{pipeline}: nothing can be written into {path} ({reason}). Nothing was published or delivered. "
            "Make the folder writable for this user, or correct the path in the pipeline's file."
        )
        self.pipeline, self.path, self.reason = pipeline, path, reason


class CompactedAway(LogError):
    """Messages are asked for that compaction has taken out of the log."""

    def __init__(self, pipeline: str, first_id: int, compacted_below: int) -> None:
        super().__init__(
            f"{pipeline}: the log is compacted below id {compacted_below}, so messages from id {first_id} on "
            f"are not complete. Begin at {compacted_below}, or say that what is left will do."
        )
        self.pipeline, self.first_id, self.compacted_below = pipeline, first_id, compacted_below
