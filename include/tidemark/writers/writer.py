"""What a writer is: something that puts the messages of one binding somewhere.

A writer knows nothing of Spark or Airflow: it is cut into parts that run anywhere, in any order and more
than once, and a last step that runs when all parts are done. Only then is its position moved, by whoever
called it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.log.binding import Binding
from tidemark.log.files import LogFolder
from tidemark.log.manifest import LogFile


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one binding that one task takes."""

    binding: Binding
    files: tuple[LogFile, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """What was done with a part, or with all of them: every message is counted exactly once."""

    written: int = 0
    filtered: int = 0
    """Kept out by the writer's namespaces."""
    ignored: int = 0
    """Nothing to write for this kind of writer, or there already."""
    details: Mapping[str, int] = field(default_factory=dict)
    """What only this kind of writer counts."""

    def __add__(self, other: "Written") -> "Written":
        names = {**self.details, **other.details}
        return Written(
            self.written + other.written,
            self.filtered + other.filtered,
            self.ignored + other.ignored,
            {name: self.details.get(name, 0) + other.details.get(name, 0) for name in names},
        )


class Writer(Protocol):
    """One kind of writer; instances are pickled to where their parts run."""

    @property
    def name(self) -> str:
        """Its name in the pipeline file."""

    @property
    def shape(self) -> Mapping[str, Any]:
        """The settings that shape the output: they may not change while the writer lives."""

    def prepare(self) -> None:
        """Make what the output needs (folders, tables); called before the first part of a run."""

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """The parts of a binding."""

    def write(self, part: Part, log: LogFolder) -> Written:
        """Write one part; writing it again changes nothing."""

    def finish(self, binding: Binding) -> None:
        """What comes after all parts of a binding; doing it again changes nothing."""


def admit(messages: pa.Table, namespaces: re.Pattern[str]) -> pa.Table:
    """The messages whose originating namespace the expression finds a match in."""
    if namespaces.pattern == ".*":
        return messages
    names = pc.unique(messages["namespace"]).to_pylist()
    admitted = [name for name in names if namespaces.search(name)]
    return messages.filter(pc.is_in(messages["namespace"], value_set=pa.array(admitted, pa.string())))
