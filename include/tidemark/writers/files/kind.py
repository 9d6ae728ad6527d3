"""How the kind ``files`` declares itself: its keys, what it claims, how it is built. Imports no writer."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, Field

from tidemark.connections import Connections
from tidemark.pipeline import checks
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import Count, Location
from tidemark.pipeline.transforms import Transforms
from tidemark.pipeline.writers import FolderClaim, WriterClaim, WriterDeclaration, WriterKind

if TYPE_CHECKING:
    from tidemark.writers.files.removal import FilesRemoval
    from tidemark.writers.files.writer import FilesWriter


class FileFormat(StrEnum):
    """What a files writer writes."""

    PARQUET = "parquet"
    JSONL = "jsonl"


class FilesDeclaration(WriterDeclaration):
    """Writes one file per binding into a folder."""

    kind: Literal["files"]
    path: Annotated[Location, AfterValidator(checks.own_location)]
    format: FileFormat = FileFormat.PARQUET
    transforms: Transforms = ()
    reconcile: Annotated[Count, Field(ge=0, le=100_000)] = 2

    def claims(self) -> Iterable[WriterClaim]:
        """See ``WriterDeclaration``."""
        yield FolderClaim("path", self.path, has_renditions=True)

    @property
    def place(self) -> str:
        """See ``WriterDeclaration``: the folder."""
        return self.path

    def sibling(self, place: str, number: int) -> str:
        """See ``WriterDeclaration``."""
        return f"{place.rstrip('/')}.r{number}"

    def at_place(self, place: str) -> Self:
        """See ``WriterDeclaration``."""
        return self.model_copy(update={"path": place})


def _build(pipeline: Pipeline, declared: FilesDeclaration, connections: Connections) -> "FilesWriter":
    from tidemark.writers.files.writer import FilesWriter

    return FilesWriter(pipeline.name, declared, pipeline.log.path, pipeline.source.kafka.format)


def _removal(
    pipeline: Pipeline, declared: FilesDeclaration, connections: Connections, topics: Collection[str]
) -> "FilesRemoval":
    from tidemark.writers.files.removal import FilesRemoval

    return FilesRemoval(pipeline.name, declared)


FILES = WriterKind("files", FilesDeclaration, _build, _removal)
