"""Collections as a data source of Spark: ``spark.read.format("collection")``, read-only, as of one time.

``register_collections`` makes the format known to a session, with the pipelines whose collections are read.
Their connections are pickled with the source; they appear in no option, plan or page. A read holds its time
for a fixed term, because no process stands behind a plan: a task that runs past it is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import (  # noqa: TID253  (they are its classes)
    DataSource,
    DataSourceReader,
    InputPartition,
)

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.client.collection.opened import newest_time
from tidemark.client.collection.settings import CollectionSettings, collection_settings
from tidemark.client.collection.times import parse_time
from tidemark.clock import SECOND, wall_clock
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.tables import CollectionTables
from tidemark.connections import CassandraConnection
from tidemark.errors import did_you_mean, with_fields
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.model.reading import check_readable
from tidemark.outputs.reader_errors import ReaderExpired
from tidemark.outputs.state.reader_lease import held_for_term
from tidemark.pipeline.connections import Lookup
from tidemark.pipeline.loader import find_pipeline
from tidemark.spark.session_facts import core_count, is_connect
from tidemark.spark.source.cassandra import in_words_of_spark, to_arrow
from tidemark.spark.source.errors import DataSourceError
from tidemark.spark.source.python_workers import check_workers
from tidemark.spark.source.reader import RANGES_A_SPLIT, SPLITS_A_CORE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "collection"
TERM = 6 * 3600 * SECOND
"""How long a read holds its time, in µs."""
WHO = "Spark, format collection"

_OPTIONS = {"pipeline": "pipeline", "writer": "writer", "asof": "asOf"}
"""The options by their names in lower case, as Spark hands them over."""


@with_fields
class CollectionOptionsRefused(DataSourceError):
    """Options of a read that cannot be meant."""

    problem: str

    text = "Data source collection: {problem} Nothing was read."


@with_fields
class WriteRefused(DataSourceError):
    """A write to a collection."""

    text = (
        "Data source collection: collections are only read; their rows come from Kafka. Nothing was written. "
        "Send messages to the topics of the pipeline."
    )


@dataclass(frozen=True)
class CollectionRead:
    """One collection as of one time, held until its term is over. Goes to Spark's tasks.

    Attributes:
        connection: The cluster of the tables.
        place: The tables of the rendition that is active at the time.
        t: The time.
        held: The capability.
    """

    connection: CassandraConnection
    place: CollectionPlace
    t: int
    held: Capability

    @classmethod
    def of(cls, settings: CollectionSettings, at: int | None) -> "CollectionRead":
        """Hold a time, or the newest one. Raises NotYet, Forgotten, Tainted or CollectionUnreadable."""
        opened = settings.open(WHO)
        with opened.asking():
            t = newest_time(opened.view.fresh()) if at is None else at
            output = opened.view.covering(t)
            output.resolve(t)
            held = held_for_term(opened.readers, f"spark-{t}", t, WHO, TERM)
            rendition = check_readable(output, held, t, opened.readers.clock())
            return cls(settings.cassandra, settings.place_of(rendition), t, held)

    @property
    def reader(self) -> CollectionReader:
        """Reads the tables."""
        return CollectionReader(CollectionTables.of(connect(self.connection), self.place))

    def check(self) -> None:
        """Raise ReaderExpired once the term is over."""
        if not self.held.is_usable_at(wall_clock()):
            raise ReaderExpired(self.place.pipeline, self.place.writer, self.held.reader)


class CollectionDataSource(DataSource):
    """A collection as of one time; Spark makes one for every ``load``."""

    registered: ClassVar[Mapping[str, Sequence[CollectionSettings]]] = {}
    """The collections by their pipeline."""
    cores: ClassVar[int] = 2

    def __init__(self, options: Any) -> None:
        self._options = dict(options)
        self._opened: CollectionRead | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    @property
    def _read(self) -> CollectionRead:
        """What is read, with its time held. Spark pickles it with the source once the schema was asked for,
        so that all actions of a plan read one time."""
        if self._opened is None:
            self._opened = CollectionRead.of(*_wanted(self.registered, self._options))
        return self._opened

    def schema(self) -> "StructType":
        """The columns of the key, then the others, by their CQL types."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._read.reader.schema)

    def reader(self, schema: "StructType") -> "CollectionSplits":
        """A read of the columns of this schema."""
        self._read.check()
        arrow = to_arrow(schema)
        with in_words_of_spark(self._read.place.rows):
            self._read.reader.refuse_other_types(arrow)
        return CollectionSplits(self._read, arrow, SPLITS_A_CORE * self.cores)

    def writer(self, schema: "StructType", overwrite: bool) -> Any:
        """Refused: collections are only read."""
        raise WriteRefused

    def streamWriter(self, schema: "StructType", overwrite: bool) -> Any:
        """Refused: collections are only read."""
        raise WriteRefused


@dataclass
class Ranges(InputPartition):
    """What one task reads."""

    ranges: tuple[TokenRange, ...]


class CollectionSplits(DataSourceReader):
    """One read of a collection, whole: ranges of the ring, of which each task reads some."""

    def __init__(self, read: CollectionRead, schema: "pa.Schema", splits: int) -> None:
        self._read, self._schema, self._splits = read, schema, splits

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges that together cover the whole ring."""
        ranges = cut_ring(ring_tokens(connect(self._read.connection)), self._splits * RANGES_A_SPLIT)
        return [Ranges(tuple(group)) for group in deal(ranges, self._splits)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one partition. A batch that was read past the end of the term is not returned."""
        assert isinstance(partition, Ranges)
        self._read.check()
        for batch in self._read.reader.rows(self._read.t, self._schema, partition.ranges):
            self._read.check()
            yield batch
        self._read.check()


def register_collections(spark: "SparkSession", *pipelines: str, look_up: Lookup | None = None) -> None:
    """Make the format ``collection`` known to a Spark session: a classic session, or one of Spark Connect.

    ``pipelines``: the pipelines whose collections are read. Their files are read here, so the engine needs
    neither them nor their connections' names.

    ``look_up``: returns a connection by its name; None: the environment variables ``AIRFLOW_CONN_…``.

    Registering again replaces what was registered. Raises ``NotACollection`` for a pipeline without one, and
    ``WorkersRefused`` where the Python that Spark starts for tasks cannot run this library.
    """
    if not is_connect(spark):
        check_workers()
    known = {name: _collections_of(name, look_up) for name in pipelines}
    registered = type(
        CollectionDataSource.__name__,
        (CollectionDataSource,),
        {"registered": known, "cores": core_count(spark)},
    )
    spark.dataSource.register(registered)


def _collections_of(name: str, look_up: Lookup | None) -> list[CollectionSettings]:
    writers = [one.name for one in find_pipeline(name).writers if one.kind == "collection"]
    # Without any, the refusal says so.
    return [collection_settings(name, writer, look_up) for writer in writers or (None,)]


def _wanted(
    registered: Mapping[str, Sequence[CollectionSettings]], given: Mapping[str, str]
) -> tuple[CollectionSettings, int | None]:
    """The collection and the time that options name."""
    options = {name.lower(): value for name, value in given.items()}
    for name in options:
        if name == "path":
            problem = "`load` takes no path here: give the options `pipeline` and `writer`."
            raise CollectionOptionsRefused(problem)
        if name not in _OPTIONS:
            hint = did_you_mean(name, _OPTIONS.values(), f"Options: {', '.join(_OPTIONS.values())}.")
            raise CollectionOptionsRefused(f"There is no option `{name}`. {hint}")
    pipeline = options.get("pipeline", "")
    if pipeline not in registered:
        known = ", ".join(sorted(registered)) or "none"
        missing = (
            "The option `pipeline` is missing." if not pipeline else f"Pipeline `{pipeline}` is unknown."
        )
        raise CollectionOptionsRefused(f"{missing} Registered in this session: {known}.")
    writers = {one.declared.name: one for one in registered[pipeline]}
    writer = options.get("writer") or (next(iter(writers)) if len(writers) == 1 else "")
    if writer not in writers:
        missing = f"Writer `{writer}` is no collection." if writer else "The option `writer` is missing."
        raise CollectionOptionsRefused(f"{missing} Collections of {pipeline}: {', '.join(writers)}.")
    return writers[writer], parse_time(options["asof"]) if "asof" in options else None
