"""Errors of the commit log: each names the thing it is about and what to do next."""


class LogError(ValueError):
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
