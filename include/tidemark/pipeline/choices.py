"""The values of the keys in a pipeline file that choose from a list, spelled as the file spells them."""

from enum import StrEnum


class Format(StrEnum):
    """What the messages of a source are."""

    KAFKA_JOURNAL = "kafka-journal"
    JSON = "json"
    RAW = "raw"


class SourceStart(StrEnum):
    """Where the first binding begins: at the earliest offsets, or at the pointers another replicator left."""

    EARLIEST = "earliest"
    POINTERS = "pointers"


class Isolation(StrEnum):
    """Which records of Kafka transactions are read."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class CompactionPolicy(StrEnum):
    """What makes a message of the commit log obsolete."""

    JOURNAL = "journal"
    LATEST = "latest"
    PROGRESS = "progress"
    NONE = "none"


class OnFailure(StrEnum):
    """What a stopped writer holds up: itself, or everything."""

    STOP_WRITER = "stop_writer"
    STOP_PIPELINE = "stop_pipeline"


class StoppedWriters(StrEnum):
    """What a run of ``replicate`` comes to while a failure has closed a writer's gate."""

    FAIL = "fail"
    SKIP = "skip"


class WriterKind(StrEnum):
    """The kinds of writers there are."""

    JOURNAL = "journal"
    FILES = "files"
    KAFKA = "kafka"


class WriterStart(StrEnum):
    """Where a new writer begins in the commit log."""

    EARLIEST = "earliest"
    LATEST = "latest"
    RECREATED = "recreated"
    """Where a topic begins that was deleted and made again, and accepted so; only for a journal."""


class FileFormat(StrEnum):
    """What a files writer writes."""

    PARQUET = "parquet"
    JSONL = "jsonl"


class ReplicationStrategy(StrEnum):
    """How Cassandra places the copies of a keyspace."""

    SIMPLE = "SimpleStrategy"
    NETWORK_TOPOLOGY = "NetworkTopologyStrategy"


class Consistency(StrEnum):
    """The levels at which a journal can be written and read back."""

    ONE = "ONE"
    TWO = "TWO"
    THREE = "THREE"
    QUORUM = "QUORUM"
    ALL = "ALL"
    LOCAL_QUORUM = "LOCAL_QUORUM"
    EACH_QUORUM = "EACH_QUORUM"
    LOCAL_ONE = "LOCAL_ONE"


class Operator(StrEnum):
    """How a ``skip`` compares a field with what it is given; those that compare have short names too."""

    EQUAL = "=="
    FINDS = "=~"
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="

    @classmethod
    def _missing_(cls, value: object) -> "Operator | None":
        symbol = OPERATOR_NAMES.get(value.removeprefix("$")) if isinstance(value, str) else None
        return cls(symbol) if symbol else None


OPERATOR_NAMES = {"eq": "==", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
"""Other names of operators, which may also begin with a dollar sign."""
