"""The place of a rendition, as its removal sees it: what is there, what has to be allowed, and the drop.

A kind of writer declares its removal as ``WriterKind.removal``. The place of a kind without one stays where
it is. Whether a place may be dropped at a given moment (states, readers, other pipelines) is decided by the
caller; here only its contents are judged.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, cast

from tidemark.connections import Connections
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import WRITERS, WriterDeclaration


class DropOption(StrEnum):
    """The options of ``tidemark renditions retire`` without which some places stay."""

    TABLES = "--drop-tables"
    TOPIC = "--drop-topic"


@dataclass(frozen=True, slots=True)
class PlaceContents:
    """What there is at a place.

    Attributes:
        what: The place, for plans: ``tables bank.accounts and bank.accounts_changes``.
        is_there: Whether anything of it exists.
        details: How much there is; empty where counting would take long.
        foreign: What of it belongs to others, as a clause; None where nothing does. Then it is not dropped.
    """

    what: str
    is_there: bool
    details: str = ""
    foreign: str | None = None


class PlaceRemoval(Protocol):
    """Drops the place of one rendition."""

    @property
    def option(self) -> DropOption | None:
        """The option that an operator has to give; None for a place that is dropped without one."""

    def look(self) -> PlaceContents:
        """What is there now. Read-only."""

    def drop(self) -> None:
        """Drop it whole. Idempotent: a drop that was interrupted is continued, and two may run at once."""


def removal_of(
    pipeline: Pipeline, connections: Connections, declared: WriterDeclaration, topics: Collection[str]
) -> PlaceRemoval | None:
    """The removal of the place that ``declared`` names; None for a kind without one.

    ``topics`` are the source topics whose messages the pipeline has bound.
    """
    build = WRITERS.find(declared.kind).removal
    return cast("PlaceRemoval", build(pipeline, declared, connections, topics)) if build else None
