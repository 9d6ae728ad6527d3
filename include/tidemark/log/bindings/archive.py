"""Archiving: old bindings move from the control plane into binding lists of the log's folder.

It is part of a publication. The lists are written first, the manifest that is published names them, and only
then are the rows removed, together with those of the runs that made the bindings. After a crash in between,
bindings are in both places; the door to bindings returns them once, and the next publication removes the
rows. A binding moves only when every consumer has passed it and it is older than ``log.keep_bindings`` by the
clock of the bindings; the newest binding always stays.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidemark.faults import FaultPoint, at_once, reach
from tidemark.log.bindings.last_bound import record_last_bound
from tidemark.log.errors import BindingsMissing
from tidemark.log.files.binding_lists import BindingListReader, BindingListWriter
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.model.binding_list import (
    SIZES,
    BindingLists,
    LastBound,
    ListedBindings,
    ListSizes,
    archivable,
    cut_lists,
)
from tidemark.log.state.control import LogControl

MOST = 10_000
"""The greatest number of bindings that one publication archives: a log with many takes several."""
MOST_SLICES = 400_000
"""The same for bindings of many partitions: they are held in memory."""
REMOVED_AT_ONCE = 200
"""The number of bindings whose rows one transaction removes."""


@dataclass(frozen=True, slots=True)
class Archiving:
    """When bindings leave the control plane.

    Attributes:
        keep: The age in µs below which they stay.
        passed: Reads the last id that every consumer has finished with; called only where it matters.
        most: The greatest number of bindings to archive at once.
        sizes: The sizes of lists.
    """

    keep: int
    passed: Callable[[], int]
    most: int = MOST
    sizes: ListSizes = SIZES


def archive_bindings(
    control: LogControl, root: str, lists: BindingLists, t: int, archiving: Archiving
) -> BindingLists:
    """Write lists of the bindings that may leave; returns the lists for the manifest of the publication at
    ``t``.

    Nothing refers to the new files until that manifest is current. Where there is nothing to do yet, no file
    is written and no writer's state is read.
    """
    head = control.bindings_head()
    if head.newest is None or not lists.is_due(head.upper, archiving.keep, archiving.sizes):
        return lists
    rows = _oldest_rows(control, lists)
    oldest = next(rows, None)
    if oldest is None:
        return lists
    found: list[Binding] = []
    cut = min(t, head.newest)
    if oldest.t < head.upper - archiving.keep:
        old = archivable(_joined(oldest, rows), archiving.passed(), head.upper - archiving.keep, cut)
        slices = 0
        for binding in old:
            found.append(binding)
            slices += len(binding.slices)
            if len(found) >= archiving.most or slices >= MOST_SLICES:
                break
    if not found:
        return replace(lists, since=oldest.t)
    return _write(BindingListWriter(control.pipeline, root, t), lists, found, archiving.sizes)


def _write(
    writer: BindingListWriter, lists: BindingLists, bindings: Sequence[Binding], sizes: ListSizes
) -> BindingLists:
    before = _offsets_after(writer.reader, lists)
    for part in cut_lists(bindings, sizes):
        listed = ListedBindings(before, part)
        # The binding that follows is a row: the newest one always is.
        lists = lists.with_list(writer.write(listed), part[-1].t + 1)
        before = listed.after
        reach(FaultPoint.BINDINGS_LISTED)
        while lines := lists.foldable(sizes):
            lists = lists.with_fold(writer.fold(lines))
            reach(FaultPoint.BINDINGS_FOLDED)
    return lists


def _offsets_after(reader: BindingListReader, lists: BindingLists) -> tuple[LastBound, ...]:
    """The last offset of every partition in the lists so far."""
    last = next(reader.leaves(lists.lines, lambda line: line.last_id == lists.last_id, newest=True), None)
    return reader.read(last).after if last else ()


def _oldest_rows(control: LogControl, lists: BindingLists) -> Iterator[Binding]:
    """The bindings that are in no list, oldest first, read while they are consumed; raises
    ``BindingsMissing`` at a gap."""
    end, t, limit = lists.last_id, lists.last_t, 1  # most often the first one is too young
    while rows := control.binding_rows(t, limit=limit, first=True):
        for binding in rows:
            if binding.base != end + 1:
                raise BindingsMissing(control.pipeline, end + 1, binding.base - 1)
            end, t = binding.end, binding.t
            yield binding
        limit = REMOVED_AT_ONCE


def _joined(first: Binding, rest: Iterator[Binding]) -> Iterator[Binding]:
    yield first
    yield from rest


def remove_archived(control: LogControl, root: str, lists: BindingLists) -> int:
    """Remove the rows of bindings that the lists of the current manifest have; returns how many were removed.

    The lists are read back first, so that no row goes that is not in a readable file.
    """
    done, removed = control.bindings_head().removed, 0
    if lists.last_t == NOTHING_YET or done >= lists.last_t:
        return 0
    record_last_bound(control)
    reader = BindingListReader(control.pipeline, root)
    size = at_once(REMOVED_AT_ONCE)
    for line in reader.leaves(lists.lines, lambda one: one.last_t > done):
        bindings = [one for one in reader.read(line).bindings if one.t > done]
        for first in range(0, len(bindings), size):
            part = bindings[first : first + size]
            control.remove_bindings(part)
            removed += len(part)
            reach(FaultPoint.BINDINGS_REMOVED)
    return removed
