"""Verifies binding lists: digests, totals, order, and the index of runs. Read-only."""

from collections.abc import Generator, Iterator, Sequence

from tidemark.log.errors import LogError
from tidemark.log.files.binding_lists import BindingListReader
from tidemark.log.files.run_index import run_key
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.model.binding_list import BindingList, LastBound, fold
from tidemark.log.model.manifest import Manifest


def list_problems(reader: BindingListReader, manifest: Manifest) -> Iterator[str]:
    """What is wrong with the binding lists of a manifest; holds one list in memory at a time."""
    yield from _order_problems("the manifest", manifest.bindings.lines, NOTHING_YET)
    before: tuple[LastBound, ...] | None = ()
    for line in manifest.bindings.lines:
        before = yield from _problems(reader, line, before)


def _problems(
    reader: BindingListReader, line: BindingList, before: tuple[LastBound, ...] | None
) -> Generator[str, None, tuple[LastBound, ...] | None]:
    """The problems of a line and of everything below it; returns the last offsets after it.

    ``before`` are the last offsets before it; None where they are not known, because a list is unreadable.
    """
    after = None
    try:
        if line.level:
            lines = reader.children(line)
            yield from _difference(line, fold(lines, line.path)[0])
            yield from _order_problems(line.path, lines, line.first_id - 1)
            after = before
            for one in lines:
                after = yield from _problems(reader, one, after)
        else:
            listed = reader.read(line)
            yield from _difference(line, listed.to_line(line.path, line.digest))
            if before is not None and listed.before != before:
                yield f"{line.path} begins with other offsets than the list before it ends with"
            if reader.run_keys(line) != sorted(run_key(one.run_id) for one in listed.bindings):
                yield f"{line.runs_path} has other runs than {line.path}"
            after = listed.after
    except LogError as error:
        yield str(error)
    return after


def _difference(line: BindingList, found: BindingList) -> Iterator[str]:
    for name, value in found.to_row().items():
        if (said := getattr(line, name)) != value:
            yield f"{line.path} has {name} {value}, but the line that names it says {said}"


def _order_problems(where: str, lines: Sequence[BindingList], end: int) -> Iterator[str]:
    for line in lines:
        if line.first_id != end + 1:
            yield f"{where}: {line.path} begins with id {line.first_id} instead of {end + 1}"
        end = line.last_id
