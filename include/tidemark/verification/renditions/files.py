"""Comparison of two renditions of a files writer: the messages in their files, by id.

Names and formats of files do not count, only what is in them: Parquet and JSON lines of the same messages are
the same. A message that was redelivered has a file of its own and counts as if it were in its binding's. A
file that an operator has let go has no messages. Nothing is written here.
"""

import heapq
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.log.message_text import restored
from tidemark.log.model.binding import Binding
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.verification.renditions.comparison import Compared, Comparing, chunks_of
from tidemark.verification.renditions.errors import NotComparable
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher
from tidemark.verification.renditions.messages import ID, Message, compare_messages
from tidemark.writers.files.kind import FileFormat
from tidemark.writers.files.writer import FilesWriter

BINDINGS_A_PIECE = 50
ROWS_AT_ONCE = 5_000
_REDELIVERED = re.compile(r"redelivered-(\d{20})\.")


@dataclass(frozen=True)
class FilesComparison:
    """Compares the files of bindings. Picklable: it is sent to tasks.

    Attributes:
        number: The rendition that is verified.
        active: The number of the active one.
        old: The active rendition.
        new: The rendition that is verified.
        matcher: Which differences are meant.
        mode: How they are compared.
        redelivered: The files of redelivered messages of both, by id.
    """

    number: int
    active: int
    old: FilesWriter
    new: FilesWriter
    matcher: RuleMatcher
    mode: VerificationMode
    redelivered: tuple[Mapping[int, str], Mapping[int, str]]

    def compare(self, bindings: Sequence[Binding]) -> DifferenceTally:
        """The differences of the messages of some bindings."""
        tally = DifferenceTally()
        for binding in bindings:
            sides = zip((self.old, self.new), self.redelivered, strict=True)
            old, new = (self._messages(writer, binding, others) for writer, others in sides)
            tally.add(compare_messages(old, new, self.matcher, self.mode))
        return tally

    def _messages(
        self, writer: FilesWriter, binding: Binding, redelivered: Mapping[int, str]
    ) -> Iterator[Message]:
        """The messages of a binding, in the order of ids."""
        names = [redelivered[id_] for id_ in sorted(redelivered) if binding.base <= id_ <= binding.end]
        if writer.folder.exists(writer.final(binding)):
            names.append(writer.final(binding))
        streams = (self._read(writer, name) for name in names)
        return heapq.merge(*streams, key=itemgetter(ID))

    def _read(self, writer: FilesWriter, name: str) -> Iterator[Message]:
        with writer.folder.open(name) as source:
            try:
                if writer.declared.format is FileFormat.JSONL:
                    yield from (restored(json.loads(line)) for line in _lines(source))
                else:
                    for batch in pq.ParquetFile(source).iter_batches(ROWS_AT_ONCE):
                        yield from batch.to_pylist()
            except (pa.ArrowException, OSError, ValueError, KeyError) as error:
                problem = f"{writer.folder.at(name)} cannot be read ({error})"
                place = (writer.pipeline, writer.name, self.number, self.active)
                raise NotComparable(*place, problem) from error


def compare_files(comparing: Comparing) -> Compared:
    """See ``Compare``."""
    old, new = comparing.old.writer, comparing.new.writer
    if not isinstance(old, FilesWriter) or not isinstance(new, FilesWriter):
        raise TypeError(f"{comparing.name} is no writer of files")
    numbers = comparing.new.number, comparing.old.number
    redelivered = _redelivered(old), _redelivered(new)
    comparison = FilesComparison(*numbers, old, new, comparing.matcher, comparing.mode, redelivered)
    since = comparing.log.bindings.younger(comparing.since - 1)
    bindings = list(takewhile(lambda one: one.t <= comparing.t, since))
    found = comparing.engine.run(
        "groups of bindings", comparison.compare, chunks_of(bindings, BINDINGS_A_PIECE)
    )
    tally = DifferenceTally.sum(found)
    return Compared(tally, {"messages": tally.rows, "bindings": len(bindings)}, is_by_id=True)


def _redelivered(writer: FilesWriter) -> dict[int, str]:
    """The files of redelivered messages, by id."""
    ending = f".{writer.declared.format.value}"
    names = (name for name in writer.folder.sizes() if name.endswith(ending))
    return {int(found[1]): name for name in names if (found := _REDELIVERED.match(name))}


def _lines(source: pa.NativeFile) -> Iterator[bytes]:
    """The lines of a file, read in blocks."""
    rest = b""
    while block := source.read(2**20):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    if rest:
        yield rest
