"""A collection of a pipeline's file, with the connections that its readers need."""

from dataclasses import dataclass
from typing import Any, cast

from tidemark.cassandra.session import connect
from tidemark.client.collection.errors import NotACollection
from tidemark.client.collection.opened import OpenedCollection
from tidemark.client.collection.output_view import OutputView
from tidemark.client.collection.rendition_rows import TableRenditions
from tidemark.client.settings import control_connection
from tidemark.collection.model.key_format import KeyFormat, usual_key_format
from tidemark.collection.model.keys import key_reader
from tidemark.collection.model.no_row import NoRow
from tidemark.collection.tables.codec.python_rows import PythonRows
from tidemark.collection.tables.errors import KeyRefused
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.connections import CassandraConnection, look_up_environment
from tidemark.consensus.control_plane import look_at_cluster
from tidemark.consensus.objects import Consensus
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.state.positions import Positions
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.pipeline.connections import Lookup
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import Pipeline
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.collection.places import place_of
from tidemark.writers.renditions import declaration_of


@dataclass(frozen=True)
class CollectionSettings:
    """Where a collection is.

    Attributes:
        pipeline: Its pipeline.
        declared: Its writer.
        cassandra: The cluster of its tables.
        control: The cluster of the control plane.
    """

    pipeline: Pipeline
    declared: CollectionDeclaration
    cassandra: CassandraConnection
    control: CassandraConnection

    @property
    def consensus(self) -> Consensus:
        """The control plane. Connects."""
        return look_at_cluster(self.control)

    def open(self, who: str) -> OpenedCollection:
        """What reads need. Connects to the control plane."""
        consensus, pipeline = self.consensus, self.pipeline.name
        store = OutputStore(consensus, pipeline, self.declared.name)
        control = LogControl(consensus, pipeline)
        bindings = Bindings(control, LogFolder(pipeline, self.pipeline.log.path))
        consumers = WriterConsumers(Positions(consensus, pipeline), self.declared.name)
        view = OutputView(store, Progress(control, bindings, consumers))
        renditions = TableRenditions(lambda: connect(self.cassandra), self.place_of)
        return OpenedCollection(view, ReaderStore(store), renditions, who)

    def parse_key(self, text: str) -> dict[str, Any]:
        """A key from text, as an operator writes it: the value of its only column, or a JSON object.

        Raises KeyRefused.
        """
        columns = self.declared.schema_of_rows.key
        is_object = len(columns) > 1 or (
            usual_key_format(columns) is KeyFormat.JSON and text.lstrip().startswith("{")
        )
        place = place_of(self.pipeline.name, self.declared)
        try:
            read = key_reader(columns, KeyFormat.JSON if is_object else KeyFormat.RAW)
            cells = read(text.encode())
        except NoRow as error:
            raise KeyRefused(str(place), str(error), place.key_columns) from None
        return PythonRows(place).decode_key(cells)

    def place_of(self, rendition: Rendition) -> CollectionPlace:
        """The tables of a rendition. Raises RenditionUnusable."""
        declared = declaration_of(self.pipeline.name, rendition, self.declared)
        return place_of(self.pipeline.name, cast("CollectionDeclaration", declared))


def collection_settings(name: str, writer: str | None, look_up: Lookup | None) -> CollectionSettings:
    """The settings of a pipeline's collection. Raises ``NotACollection`` where the writer is none, or where
    it is not named and there are several."""
    pipeline = find_pipeline(name)
    look_up = look_up or look_up_environment
    declared = _declared(pipeline, writer)
    return CollectionSettings(
        pipeline,
        declared,
        CassandraConnection.from_airflow(declared.connection, look_up(declared.connection)),
        control_connection(look_up, declared.connection),
    )


def _declared(pipeline: Pipeline, writer: str | None) -> CollectionDeclaration:
    kinds = {one.name: one.kind for one in pipeline.writers}
    known = [one for one in pipeline.writers if one.kind == "collection"]
    names = ", ".join(one.name for one in known)
    if not known:
        raise NotACollection(pipeline.name, "it has no writer of kind `collection`.")
    if writer is None and len(known) > 1:
        raise NotACollection(pipeline.name, f"it has several collections; name one of them: {names}.")
    for one in known:
        if writer in (None, one.name):
            return cast("CollectionDeclaration", one)
    problem = f"of kind `{kinds[writer]}`" if writer in kinds else "not there"
    raise NotACollection(pipeline.name, f"its writer {writer} is {problem}. Its collections: {names}.")
