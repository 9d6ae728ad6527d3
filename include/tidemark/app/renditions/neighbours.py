"""What others have at or around the place of a rendition: other renditions, writers, pipelines and logs.

A place is compared with everything that pipeline files declare and the control plane knows, also of pipelines
whose file is gone. Nothing is built at a place that another one needs, and no such place is ever dropped.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tidemark.app.renditions.opened import WriterRenditions
from tidemark.consensus.objects import Consensus
from tidemark.delivery.state.known_pipelines import known_pipelines
from tidemark.delivery.state.positions import Positions
from tidemark.errors import TidemarkError, with_fields
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.consumer_name import split_consumer
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline import checks
from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import FolderClaim, TargetClaim, TopicClaim, WriterClaim, WriterDeclaration
from tidemark.writers.renditions import RenditionUnusable, declaration_of


@with_fields
class PlaceShared(TidemarkError):
    """The place of a rendition is, or lies around or inside, the place of another one."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    place: str
    other: str

    text = (
        "{pipeline}/{writer}: {place}, the place of rendition {number}, belongs to {other} too. Nothing was "
        "written to it or removed. Give the writer or the other one another place in its file."
    )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A place that is needed.

    Attributes:
        owner: The owner, for messages: ``bank/accounts, rendition 2``.
        claim: What it claims; None where only its place is known, because no file declares it any more.
        place: Its place, as text.
    """

    owner: str
    claim: WriterClaim | None
    place: str = ""


def place_of(renditions: WriterRenditions, rendition: Rendition) -> WriterDeclaration:
    """The writer as the rendition was declared, at the rendition's place."""
    return declaration_of(renditions.pipeline, rendition, renditions.declared)


def refuse_shared_place(renditions: WriterRenditions, rendition: Rendition) -> None:
    """Raise ``PlaceShared`` where another one has the place of a rendition, or a part of it."""
    of, declared = renditions, place_of(renditions, rendition)
    if other := _first_shared(declared, rendition, neighbours(renditions, rendition.number)):
        raise PlaceShared(of.pipeline, of.writer, rendition.number, rendition.place, other)
    for pipeline in load_pipelines().pipelines:
        for claim in declared.claims():
            if isinstance(claim, TopicClaim) and _reads(pipeline, claim):
                reads = f"pipeline {pipeline.name}, which reads it,"
                raise PlaceShared(of.pipeline, of.writer, rendition.number, rendition.place, reads)


def neighbours(renditions: WriterRenditions, number: int) -> Iterator[Neighbour]:
    """All places but that of one rendition of this writer."""
    consensus, loaded = renditions.opened.consensus, load_pipelines().pipelines
    declared = {one.name: one for one in loaded} | {renditions.pipeline: renditions.opened.pipeline}
    for pipeline in declared.values():
        yield Neighbour(f"the log of {pipeline.name}", FolderClaim("log.path", pipeline.log.path))
        for writer in pipeline.writers:
            output = OutputStore(consensus, pipeline.name, writer.name).load()
            is_own = (pipeline.name, writer.name) == (renditions.pipeline, renditions.writer)
            yield from _of_writer(pipeline, writer, output, number if is_own else None)
    for name in known_pipelines(consensus):
        known = {one.name for one in declared[name].writers} if name in declared else set[str]()
        yield from _undeclared(consensus, name, known)


def _of_writer(
    pipeline: Pipeline, writer: WriterDeclaration, output: Output | None, left_out: int | None
) -> Iterator[Neighbour]:
    """The places of a writer's renditions; as the file declares it where it has none yet."""
    name = f"{pipeline.name}/{writer.name}"
    if output is None:
        yield from (Neighbour(name, claim, writer.place) for claim in writer.claims())
        return
    for one in output.renditions:
        if one.state is RenditionState.DROPPED or one.number == left_out:
            continue
        owner = f"{name}, rendition {one.number},"
        try:
            found = declaration_of(pipeline.name, one, writer)
        except RenditionUnusable:  # of a kind that is gone: its place is all that is known of it
            yield Neighbour(owner, None, one.place)
        else:
            yield from (Neighbour(owner, claim, one.place) for claim in found.claims())


def _undeclared(consensus: Consensus, pipeline: str, declared: Collection[str]) -> Iterator[Neighbour]:
    """The places of a pipeline's writers that no file declares any more."""
    positions, control = Positions(consensus, pipeline), LogControl(consensus, pipeline)
    if not declared and (root := control.log_head().root):
        yield Neighbour(f"the log of {pipeline}", FolderClaim("log.path", root), root)
    for writer in control.writer_names():
        state = positions.load(writer)
        if state is None or split_consumer(writer)[0] in declared:
            continue
        for key in ("path", "keyspace", "topic"):
            if (place := state.shape.get(key)) is not None:
                table = state.shape.get("table")
                where = f"{place}.{table}" if key == "keyspace" and table else str(place)
                claim = FolderClaim(key, where) if key == "path" else None
                yield Neighbour(f"{pipeline}/{writer}", claim, where)


def _first_shared(
    declared: WriterDeclaration, rendition: Rendition, others: Iterable[Neighbour]
) -> str | None:
    claims = list(declared.claims())
    for other in others:
        if other.place and other.place == rendition.place:
            return other.owner
        if any(_is_shared(claim, other.claim) for claim in claims):
            return other.owner
    return None


def _is_shared(claim: WriterClaim, other: WriterClaim | None) -> bool:
    if isinstance(claim, FolderClaim):
        return isinstance(other, FolderClaim) and checks.overlap(claim.path, other.path)
    return isinstance(other, TargetClaim | TopicClaim) and claim.identity == other.identity


def _reads(pipeline: Pipeline, claim: TopicClaim) -> bool:
    source = pipeline.source.kafka
    return source.connection == claim.connection and source.reads(claim.topic)
