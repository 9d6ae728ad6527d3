"""The renditions of a writer, each ready to be delivered to: with its own settings, at its own place.

A rendition goes on with the settings that it was declared with, whatever the file says now. Only keys that
say how output is kept or reached (``WriterDeclaration.unshaping``) are always those of the file. Nothing here
registers a writer, declares a rendition or chooses the active one: the output in the control plane says that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from tidemark.connections import Connections
from tidemark.consensus.objects import Consensus
from tidemark.delivery.renditions.output import FIRST
from tidemark.delivery.writer import Writer
from tidemark.errors import with_fields
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.settings import SHAPE, WRITER
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline.extensions import UnknownKind
from tidemark.pipeline.files.refusals import explain
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import Expiry
from tidemark.pipeline.writers import WRITERS, WriterDeclaration
from tidemark.writers.errors import WriterError


@with_fields
class RenditionUnusable(WriterError):
    """The settings of a rendition cannot be used here any more."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    problem: str

    text = (
        "{pipeline}/{writer}: the settings of rendition {number} cannot be used: {problem}. Nothing was "
        "delivered to it. Restore what they need, or build the next rendition: tidemark renditions build "
        "{pipeline} {writer}"
    )


@with_fields
class NoPlace(WriterError):
    """A writer's next rendition can have no place."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str

    text = (
        "{pipeline}/{writer}: the next rendition has no place: {problem}. Nothing was changed. Add a writer "
        "with another name and place instead."
    )


@dataclass(frozen=True)
class RenditionWriter:
    """One rendition of a writer, ready to be delivered to.

    Attributes:
        declared: The writer as the rendition was declared, with the writer's name and the rendition's place.
        number: The rendition's number.
        rendition: The rendition; None where the writer was never registered, so that it has no output yet.
        writer: The writer. Its name is the consumer's.
    """

    declared: WriterDeclaration
    number: int
    rendition: Rendition | None
    writer: Writer

    @property
    def consumer(self) -> str:
        """The name under which its position, gate and lease are stored."""
        return self.writer.name


def declared_writer(pipeline: Pipeline, writer: str) -> WriterDeclaration:
    """A writer as the pipeline's file declares it; raises ``KeyError`` for a name that it does not have."""
    return {one.name: one for one in pipeline.writers}[writer]


def sibling_place(pipeline: Pipeline, declared: WriterDeclaration, number: int) -> str:
    """The place of a new rendition of a writer in the file; raises ``NoPlace`` where it can have none."""
    try:
        return declared.sibling(declared.place, number)
    except TypeError as only_one:
        raise NoPlace(pipeline.name, declared.name, str(only_one)) from only_one
    except ValueError as error:
        raise NoPlace(pipeline.name, declared.name, f"its name {str(error).rstrip('.')}") from error


def declaration_of(pipeline: str, rendition: Rendition, now: WriterDeclaration) -> WriterDeclaration:
    """A writer as a rendition was declared, at the rendition's place.

    Args:
        pipeline: The pipeline's name, for errors.
        rendition: The rendition.
        now: The writer in the file. Its keys that are no settings are taken over.
    """
    settings: Mapping[str, Any] = rendition.settings.get(WRITER, {})
    if not settings:  # of a kind that keeps no settings
        return now
    try:
        model = WRITERS.find(settings["kind"]).declaration
        kept = {key: value for key, value in settings.items() if key not in model.unshaping}
        found = model.model_validate({**kept, "name": now.name})
    except ValidationError as error:
        problem = next(iter(explain(error, model))).text.rstrip(".")
        raise RenditionUnusable(pipeline, now.name, rendition.number, problem) from error
    except (UnknownKind, ValueError) as error:
        raise RenditionUnusable(pipeline, now.name, rendition.number, str(error).rstrip(".")) from error
    looked_after = {
        key: getattr(now, key) for key in model.unshaping if key in model.model_fields and hasattr(now, key)
    }
    found = found.model_copy(update=looked_after)
    return found if rendition.place in ("", found.place) else found.at_place(rendition.place)


def build_declared(pipeline: Pipeline, connections: Connections, writer: str) -> RenditionWriter:
    """A writer as the file declares it: its first rendition, which is not registered yet."""
    declared = declared_writer(pipeline, writer)
    return RenditionWriter(declared, FIRST, None, build_writer(pipeline, connections, declared, FIRST))


def build_rendition(
    pipeline: Pipeline, connections: Connections, writer: str, rendition: Rendition
) -> RenditionWriter:
    """A rendition of a writer that the file declares, with its own settings; raises ``RenditionUnusable``."""
    declared = declaration_of(pipeline.name, rendition, declared_writer(pipeline, writer))
    as_then = _with_its_source(pipeline, rendition)
    try:
        built = build_writer(as_then, connections, declared, rendition.number)
    except KeyError as missing:  # another kind, which needs a connection that the file does not name
        problem = f"it needs the connection {missing}, which the file does not name any more"
        raise RenditionUnusable(pipeline.name, writer, rendition.number, problem) from missing
    if rendition.state is RenditionState.BUILDING:
        built = built.beside()
    return RenditionWriter(declared, rendition.number, rendition, built)


def load_output(pipeline: Pipeline, consensus: Consensus, writer: str) -> Output | None:
    """The output of a writer as it is now; None before its first delivery."""
    return OutputStore(consensus, pipeline.name, writer).load()


def build_writer(
    pipeline: Pipeline, connections: Connections, declared: WriterDeclaration, number: int
) -> Writer:
    """The writer of a rendition, under its consumer's name."""
    named = declared.model_copy(update={"name": consumer_name(declared.name, number)})
    built = WRITERS.find(declared.kind).build(pipeline, named, connections)
    return cast("Writer", built)


def _with_its_source(pipeline: Pipeline, rendition: Rendition) -> Pipeline:
    """The pipeline with the time zone and the source format that a rendition was declared with."""
    shape: Mapping[str, Any] = rendition.settings.get(SHAPE, {})
    zone, read_as = shape.get("timezone"), shape.get("source_format")
    if zone is not None and zone != (pipeline.expiry or Expiry()).timezone:
        expiry = (pipeline.expiry or Expiry()).model_copy(update={"timezone": zone})
        pipeline = pipeline.model_copy(update={"expiry": expiry})
    if read_as is not None and read_as != pipeline.source.kafka.format:
        kafka = pipeline.source.kafka.model_copy(update={"format": read_as})
        source = pipeline.source.model_copy(update={"kafka": kafka})
        pipeline = pipeline.model_copy(update={"source": source})
    return pipeline
