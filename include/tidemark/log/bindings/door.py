"""The one door to bindings: it finds them in the control plane and in the log's binding lists.

It reads the control plane first and then the manifest that is current after that. Rows are removed only after
a manifest names the list that has them, so a binding that is no row any more is in that manifest's lists.
Where an archiving process has crashed, a binding is in both: it is returned once. Bindings are always
consecutive: a gap raises ``BindingsMissing``. Read-only; nothing else reads the rows of bindings.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidemark.log.bindings.offset_search import OffsetSearch
from tidemark.log.errors import BadBinding, BindingsMissing
from tidemark.log.files.binding_lists import BindingListReader
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition
from tidemark.log.model.binding_list import BindingList, BindingLists, ListedBindings
from tidemark.log.state.control import PAGE, BindingsHead, LogControl

MUCH_YOUNGER = 3_600_000_000
"""The greatest expected difference, in µs, between two clocks or between a binding's time and the clock."""
AT_ONCE = 50
"""How many bindings to read at once by their times."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Which bindings are wanted: those that end after an id, or that are younger than a time."""

    after_id: int | None = None
    after_t: int = NOTHING_YET

    def has(self, last_id: int, last_t: int) -> bool:
        """Whether a binding or a list that ends here is wanted."""
        return last_id > self.after_id if self.after_id is not None else last_t > self.after_t

    def wants(self, binding: Binding) -> bool:
        """Whether a binding is wanted."""
        return self.has(binding.end, binding.t)

    def begins_at(self, binding: Binding) -> bool:
        """Whether no binding before this one can be wanted."""
        if binding.base == 0 or not self.wants(binding):
            return True
        return self.after_id is not None and binding.base <= self.after_id + 1


def _page_sizes() -> Iterator[int]:
    """How many rows to read at once, going back in time: few at first, because a binding of many partitions
    is a large row, and most often the newest one is enough."""
    size = 2
    while True:
        yield min(size, PAGE)
        size *= 4


def _note_listed(search: OffsetSearch, listed: ListedBindings, t: int, last_id: int) -> None:
    """Search the bindings of a list that end at or below an id, and all before the list: it begins with the
    last offsets before it."""
    for older in reversed(listed.bindings):
        if older.end <= last_id:
            search.note(older, t)
    for one in listed.before:
        search.note(one.binding, t)
    search.end(t)


class Bindings:
    """The bindings of one pipeline. ``folder`` is the log's; without one, the folder that the current
    manifest was written to."""

    def __init__(self, control: LogControl, folder: LogFolder | None = None) -> None:
        self._control, self._folder = control, folder
        self._unknown_runs: set[str] = set()

    def after(self, position: int) -> Iterator[Binding]:
        """The bindings that own ids beyond ``position``, oldest first.

        Near the end of the log one page of rows is read. Older bindings are read while they are consumed, one
        page or one list at a time.
        """
        return self._walk(_Range(after_id=position))

    def younger(self, t: int) -> Iterator[Binding]:
        """The bindings with a time after ``t``, oldest first, read while they are consumed."""
        return self._walk(_Range(after_t=t))

    def every(self) -> Iterator[Binding]:
        """All bindings, oldest first."""
        return self.after(NOTHING_YET)

    def at(self, t: int) -> Binding:
        """The binding at ``t``; raises ``BadBinding`` where there is none."""
        found = self._control.binding_at(t)
        if found is None:
            for line in self._reader.leaves(self._lists().lines, lambda one: one.first_t <= t <= one.last_t):
                found = next((one for one in self._reader.read(line).bindings if one.t == t), None)
        if found is None:
            raise BadBinding(
                f"{self._control.pipeline}: there is no binding at {t}. Nothing was done; look at tidemark "
                "status."
            )
        return found

    def expect_new(self, run_id: str) -> None:
        """Search no list for this run: its id is made up just now, so that at most a row can have it."""
        self._unknown_runs.add(run_id)

    def of_run(self, run_id: str) -> Binding | None:
        """The binding that a run has created, however long ago; None where it has created none."""
        t, head = self._control.run_rows(run_id)
        if t is not None:
            return self.at(t)
        if head.removed == NOTHING_YET or run_id in self._unknown_runs:
            return None
        found = self._reader.find_run(self._lists().lines, run_id)
        if found is None:
            # It stays unknown to lists as long as this process asks: what it binds from now on is a row.
            self._unknown_runs.add(run_id)
        return found

    def before(self, t: int | None = None) -> Iterator[Binding]:
        """The bindings with times before ``t`` (None: all of them), newest first, read while they are
        consumed."""
        head, oldest = self._control.bindings_head(), None
        while rows := self._control.binding_rows(head.removed, oldest.t if oldest else t):
            for binding in reversed(rows):
                self._refuse_gap(binding, oldest)
                yield binding
                oldest = binding
        if oldest is not None and oldest.base == 0:
            return
        lists, end = self._lists(), oldest.t if oldest else t
        if oldest is not None and oldest.base > lists.last_id + 1:
            raise BindingsMissing(self._control.pipeline, lists.last_id + 1, oldest.base - 1)
        lines = self._reader.leaves(lists.lines, lambda one: end is None or one.first_t < end, newest=True)
        for line in lines:
            for binding in reversed(self._reader.read(line).bindings):
                if end is None or binding.t < end:
                    yield binding

    def offsets_before(
        self, binding: Binding, is_same: Callable[[str, Binding], bool] = lambda topic, older: True
    ) -> dict[TopicPartition, int]:
        """The last offset bound before ``binding`` in each of its partitions; none for a new partition.

        ``is_same`` tells whether a topic of an older binding is the same topic as in ``binding``, and not one
        that was deleted since and recreated under the same name. Where it is not, it must not be in bindings
        that are older still: the search ends there.

        A few reads where the binding has the times at which its partitions were last bound, however long ago
        that was. Bindings of earlier versions have none: all bindings since are read.
        """
        search = OffsetSearch(binding, is_same)
        if not search.times:
            return search.found
        removed = self._control.bindings_head().removed
        self._search_back(search, binding, removed)
        rows = [t for t in search.times if t > removed]
        for first in range(0, len(rows), AT_ONCE):
            for older in self._control.bindings_at(rows[first : first + AT_ONCE]):
                search.note(older, older.t)
                # Only known to be not bound since: processes of an earlier version bound before.
                self._search_back(search, older, removed)
        if search.times:
            # No row has them, and none of their partitions was bound since: one list has all that is left.
            t = search.times[0]
            listed = self._list_where(lambda one: one.first_t <= t <= one.last_t, binding)
            _note_listed(search, listed, t, binding.base - 1)
        return search.found

    def _search_back(self, search: OffsetSearch, start: Binding, removed: int) -> None:
        """Look at one binding after the other before ``start``, as long as partitions with its time are
        left."""
        oldest = start
        for limit in _page_sizes():
            if not search.has_left(start.t):
                return
            rows = self._control.binding_rows(removed, oldest.t, limit) if oldest.base else []
            if not rows:
                break
            for older in reversed(rows):
                self._refuse_gap(older, oldest)
                search.note(older, start.t)
                oldest = older
        if oldest.base:
            last = oldest.base - 1
            listed = self._list_where(lambda one: one.first_id <= last <= one.last_id, oldest)
            _note_listed(search, listed, start.t, last)
        search.end(start.t)

    def _list_where(self, is_here: Callable[[BindingList], bool], younger: Binding) -> ListedBindings:
        """The list that has a binding which must exist before ``younger``."""
        lists = self._lists()
        for line in self._reader.leaves(lists.lines, is_here):
            return self._reader.read(line)
        last = younger.base - 1
        raise BindingsMissing(self._control.pipeline, min(lists.last_id + 1, last), last)

    def last_of(self, topic: str, position: int, found: int) -> Binding | None:
        """The last binding of ``topic`` that ends at or below ``position``; None where there is none.

        The search goes back in time from ``found`` (µs) plus the tolerated difference of clocks; 0 starts at
        the newest binding.
        """
        for binding in self.before(found + MUCH_YOUNGER if found else None):
            if binding.end <= position and any(s.topic == topic for s in binding.slices):
                return binding
        return None

    def _walk(self, wanted: _Range) -> Iterator[Binding]:
        head = self._control.bindings_head()
        if head.newest is None:
            return
        page, is_oldest = self._find_page(wanted, head)
        if not page:
            raise BindingsMissing(self._control.pipeline, max(wanted.after_id or 0, 0), self._last_known())
        previous: Binding | None = None
        if is_oldest and not wanted.begins_at(page[0]):
            yield from self._listed(wanted, page[0].base)
        while page:
            for binding in page:
                if wanted.wants(binding):
                    if previous is not None and binding.base > previous.end + 1:
                        # Rows were removed since the last page was read.
                        following = self._listed(_Range(after_id=previous.end), binding.base)
                        yield from (one for one in following if wanted.wants(one))
                    yield binding
                previous = binding
            if page[-1].t >= head.newest:
                return
            page = self._control.binding_rows(page[-1].t, first=True)
        raise BindingsMissing(self._control.pipeline, previous.end + 1 if previous else 0, self._last_known())

    def _find_page(self, wanted: _Range, head: BindingsHead) -> tuple[Sequence[Binding], bool]:
        """The page of rows in which the wanted bindings begin, and whether no row is older than it."""
        found: Sequence[Binding] = ()
        for limit in _page_sizes():
            rows = self._control.binding_rows(head.removed, found[0].t if found else None, limit)
            if not rows:
                break
            found = rows
            if wanted.begins_at(rows[0]):
                return found, False
            if len(rows) < limit:
                break
        return found, True

    def _listed(self, wanted: _Range, below: int) -> Iterator[Binding]:
        """The wanted bindings of lists with ids below ``below``, which is where the rows begin."""
        lists = self._lists()
        if lists.last_id + 1 < below:
            last = lists.last_id if wanted.after_id is None else max(lists.last_id, wanted.after_id)
            raise BindingsMissing(self._control.pipeline, last + 1, below - 1)

        def is_here(line: BindingList) -> bool:
            return line.first_id < below and wanted.has(line.last_id, line.last_t)

        for line in self._reader.leaves(lists.lines, is_here):
            for binding in self._reader.read(line).bindings:
                if binding.base < below and wanted.wants(binding):
                    yield binding

    def _lists(self) -> BindingLists:
        """The lists of the manifest that is current now; read after the control plane's rows."""
        head = self._control.log_head()
        if head.manifest is None or head.digest is None:
            return BindingLists()
        folder = self._folder or LogFolder(self._control.pipeline, head.root or "")
        return folder.read_manifest(head.manifest, head.digest).bindings

    @cached_property
    def _reader(self) -> BindingListReader:
        root = self._folder.root if self._folder else self._control.log_head().root
        return BindingListReader(self._control.pipeline, root or "")

    def _last_known(self) -> int:
        return max(self._control.log_head().end, 0)

    def _refuse_gap(self, older: Binding, younger: Binding | None) -> None:
        if younger is not None and older.end + 1 != younger.base:
            raise BindingsMissing(self._control.pipeline, older.end + 1, younger.base - 1)
