"""Extension points: where kinds of writers, source formats, compaction policies and transforms are found.

Each point is a group of entry points. Tidemark's own kinds are declared in ``pyproject.toml`` like those of
any other package. They are listed here once more, because an executor runs the library from an archive
without package metadata, and an installation may be older than the code beside it.

What it refuses to do: import a package before a file names its kind, or a caller lists a group's kinds;
choose between two packages that claim the same name; let the broken package of one kind take down pipelines
that do not use it.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import SelectableGroups, entry_points
from typing import Any, Generic, Protocol, TypeVar

from tidemark.errors import did_you_mean, with_fields
from tidemark.pipeline.problems import PipelineError, quoted, shortened

OURS = "tidemark"

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "tidemark.writers": {
        "journal": "tidemark.writers.journal.kind:JOURNAL",
        "files": "tidemark.writers.files.kind:FILES",
        "kafka": "tidemark.writers.kafka.kind:KAFKA",
        "collection": "tidemark.writers.collection.kind:COLLECTION",
    },
    "tidemark.formats": {
        "kafka-journal": "tidemark.writers.formats:KAFKA_JOURNAL",
        "json": "tidemark.writers.formats:JSON",
        "raw": "tidemark.writers.formats:RAW",
        "oplog": "tidemark.writers.formats:OPLOG",
    },
    "tidemark.policies": {
        "journal": "tidemark.compaction.policies.kinds:JOURNAL",
        "latest": "tidemark.compaction.policies.kinds:LATEST",
        "progress": "tidemark.compaction.policies.kinds:PROGRESS",
        "oplog": "tidemark.compaction.policies.kinds:OPERATIONS",
        "none": "tidemark.compaction.policies.kinds:NONE",
    },
    "tidemark.transforms": {
        "rename": "tidemark.delivery.transforms.fields:RENAME",
        "pick": "tidemark.delivery.transforms.fields:PICK",
        "omit": "tidemark.delivery.transforms.fields:OMIT",
        "skip": "tidemark.delivery.transforms.skip:SKIP",
        "pretty": "tidemark.delivery.transforms.pretty:PRETTY",
        "function": "tidemark.delivery.transforms.function:FUNCTION",
    },
}
"""The entry points of ``pyproject.toml``; a test holds the two equal."""


class Named(Protocol):
    """A kind of any extension point."""

    @property
    def name(self) -> str:
        """The word for it in a pipeline file."""


K = TypeVar("K", bound=Named)


@dataclass(frozen=True, slots=True)
class Provided:
    """One entry point: a name, the ``module:attribute`` that declares the kind, and the package it comes
    with."""

    name: str
    target: str
    package: str


@with_fields
class UnknownKind(PipelineError, LookupError):
    """No package that is installed here provides a kind of this name."""

    group: str
    name: str

    text = (
        "no package installed here provides `{name}` in group {group}. Install it wherever pipelines are "
        "read and delivered, Spark's executors included."
    )


class KindUnusable(ValueError):
    """A kind is installed, but its declaration cannot be used. The text goes on where the key's name ends."""


@dataclass(frozen=True)
class ExtensionPoint(Generic[K]):
    """The kinds of one group of entry points. A kind is imported when it is asked for."""

    group: str
    declared_as: type[K]
    """The type of the attributes that the entry points name."""

    def names(self) -> list[str]:
        """The names of all kinds: Tidemark's own first, in their order, then those of other packages."""
        return list(_provided(self.group))

    def find(self, name: str) -> K:
        """The kind of this name. Raises ``UnknownKind``, or ``KindUnusable`` where its package is at
        fault."""
        provided = _provided(self.group).get(name)
        if provided is None:
            raise UnknownKind(self.group, name)
        if len(provided) > 1:
            packages = " and ".join(sorted(one.package for one in provided))
            raise KindUnusable(
                f"is {quoted(name)}, which more than one package provides: {packages}. None of them was "
                "chosen. Uninstall all but one."
            )
        (only,) = provided
        return self._load(only)

    def usable(self) -> Iterator[K]:
        """Every kind that can be loaded."""
        for name in self.names():
            try:
                yield self.find(name)
            except KindUnusable:
                continue

    def listed(self) -> str:
        """All names for a message; those of other packages with the package."""
        return ", ".join(
            name
            if any(one.package == OURS for one in provided)
            else f"{name} (package {provided[0].package})"
            for name, provided in _provided(self.group).items()
        )

    def choose(self, name: str) -> str:
        """The name of a kind that can be used; raises ``ValueError`` with the rest of a sentence."""
        try:
            self.find(name)
        except UnknownKind:
            hint = did_you_mean(name, self.names(), "")
            raise ValueError(
                f"is {quoted(name)}, which is not one of {self.listed()}. {hint}".rstrip()
            ) from None
        return name

    def _load(self, provided: Provided) -> K:
        try:
            kind = load_attribute(provided.target)
        except (Exception, SystemExit) as error:  # any failure of another package stays with that package
            raise KindUnusable(
                f"is {quoted(provided.name)}, which package {provided.package} provides and which cannot be "
                f"loaded ({type(error).__name__}: {shortened(error)}). Repair or reinstall the package "
                "wherever pipelines are read and delivered."
            ) from error
        if not isinstance(kind, self.declared_as) or kind.name != provided.name:
            raise KindUnusable(
                f"is {quoted(provided.name)}, but {provided.target} of package {provided.package} is not a "
                f"{self.declared_as.__name__} of that name. Correct the entry point in {self.group}."
            )
        return kind


def load_attribute(target: str) -> Any:
    """What ``module:attribute`` names; its module is imported."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _provided(group: str) -> Mapping[str, tuple[Provided, ...]]:
    return _installed(group, tuple(sys.path))


@lru_cache(maxsize=8)
def _entry_points(path: tuple[str, ...]) -> SelectableGroups:
    """All entry points on ``path``: read once for all groups, because that opens every installed package."""
    return entry_points()


@lru_cache(maxsize=64)
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, tuple[Provided, ...]]:
    """The entry points of all packages on ``path``, which is ``sys.path``."""
    own = {name: Provided(name, target, OURS) for name, target in BUILT_IN.get(group, {}).items()}
    others: dict[str, list[Provided]] = {}
    for point in _entry_points(path).select(group=group):
        package = point.dist.name if point.dist else "unknown"
        found = Provided(point.name, point.value, package)
        if package == OURS:
            own.setdefault(point.name, found)  # the metadata may be older than the code
        else:
            others.setdefault(point.name, []).append(found)
    names = [*own, *sorted(others.keys() - own.keys())]
    return {name: (*([own[name]] if name in own else []), *others.get(name, ())) for name in names}
