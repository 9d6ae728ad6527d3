"""sweep: remove files from a log's folder that nothing refers to any more.

Only what the log itself has written is ever touched: data files, manifests, lists, records of captures, plans
and what is left in staging. Everything that belongs to an unpublished binding stays, and so does whatever the
current manifest, the manifest of a reader or the plan of a compaction names. The rest is condemned first, and
removed by a later sweep, after the grace time: a process may read it without being registered as a reader.
Audits stay: they are the evidence for what was published.

Holds the log's lease, so that no compaction finds a file there and loses it afterwards.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease_holder import holding
from tidemark.faults import FaultPoint, reach
from tidemark.log.errors import FileMissing
from tidemark.log.files.folder import STAGING, Folder, StoredFile
from tidemark.log.files.parquet import LogFolder
from tidemark.log.files.segment_lists import LISTS, PLAN_DIGITS
from tidemark.log.model.manifest import ClosedPart, ListLine, Manifest
from tidemark.log.publish import read_manifest
from tidemark.log.state.control import LogControl
from tidemark.log.state.lease import LogHold, read_lease, take_log
from tidemark.log.state.readers import readers

AREAS = ("files", "manifests", LISTS, "captured", "plans", STAGING)
"""The folders that are swept."""
CONDEMNED = "condemned.json"
"""The file with all orphans and the times (µs) at which a sweep first found them."""
PLAN_LIFE = 7 * 24 * 3600 * SECOND
"""The minimum lifetime of a compaction's plan in µs: it may wait for an operator's approval."""

_DATA = re.compile(r"files/(?P<first>\d{20})-(?P<last>\d{20})(-(?P<plan>[0-9a-f]{12}))?\.parquet")
_MANIFEST = re.compile(r"manifests/(?P<t>\d{20})-[0-9a-f]{12}\.json")
_LIST = re.compile(r"lists/(?P<t>\d{20})-[0-9a-f]{12}-\d+(-(?P<plan>[0-9a-f]{12}))?\.json")
_CAPTURED = re.compile(r"captured/(?P<t>\d{20})\.json")
_PLAN = re.compile(r"plans/(?P<plan>[0-9a-f]{64})(\.files)?\.json")
_STAGED = re.compile(r"staging/(?P<area>[^/]+)(/.*)?")


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that must not be removed.

    Attributes:
        t: The newest published binding.
        end: The last published id: later ids may belong to a running capture.
        files: The current manifest and those of readers, with all their lists and files.
        plans: The digests of the plans of a running compaction and a running merge.
    """

    t: int
    end: int
    files: Collection[str]
    plans: tuple[str, ...] = ()

    def is_orphan(self, path: str) -> bool:
        """Whether a file is not needed any more; files with names that Tidemark does not use never are
        orphans.
        """
        if path in self.files:
            return False
        if found := _DATA.fullmatch(path):
            return int(found["first"]) <= self.end and not self._is_planned(found["plan"])
        if found := _LIST.fullmatch(path):
            return int(found["t"]) <= self.t and not self._is_planned(found["plan"])
        if found := _MANIFEST.fullmatch(path) or _CAPTURED.fullmatch(path):
            return int(found["t"]) <= self.t
        if found := _PLAN.fullmatch(path):
            return not self._is_planned(found["plan"])
        if found := _STAGED.fullmatch(path):
            area = found["area"]
            return int(area) <= self.t if area.isdecimal() else not self._is_planned(path)
        return False

    def _is_planned(self, name: str | None) -> bool:
        return name is not None and any(plan[:PLAN_DIGITS] in name for plan in self.plans)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that nothing refers to; ``since`` (µs) is when a sweep first found it."""

    path: str
    bytes: int
    since: int

    def goes_at(self, grace: int) -> int:
        """When it may be removed, in µs."""
        return self.since + (max(grace, PLAN_LIFE) if _PLAN.fullmatch(self.path) else grace)


@dataclass(frozen=True, slots=True)
class Swept:
    """The orphans that a sweep removes, and those whose grace time has not ended."""

    pipeline: str
    removed: tuple[Orphan, ...]
    waiting: tuple[Orphan, ...]

    @property
    def bytes(self) -> int:
        """The size of the removed files."""
        return sum(orphan.bytes for orphan in self.removed)

    def to_dict(self) -> dict[str, Any]:
        """The form of summaries."""
        return {**asdict(self), "bytes": self.bytes}


def judge(
    pipeline: str,
    stored: Sequence[StoredFile],
    named: NamedFiles,
    condemned: Mapping[str, int],
    now: int,
    grace: int,
) -> Swept:
    """Which stored files are removed now, and which later. Deterministic."""
    orphans = [
        Orphan(file.path, file.bytes, condemned.get(file.path, now))
        for file in sorted(stored)
        if named.is_orphan(file.path)
    ]
    return Swept(
        pipeline,
        tuple(orphan for orphan in orphans if orphan.goes_at(grace) <= now),
        tuple(orphan for orphan in orphans if orphan.goes_at(grace) > now),
    )


def look_for_orphans(control: LogControl, folder: LogFolder, grace: int, now: int) -> Swept:
    """The result of a sweep without its changes. Read-only."""
    # List the files first: whatever is published or opened afterwards is newer than every file on the list.
    files = Folder(control.pipeline, folder.root)
    stored = [file for area in AREAS for file in files.walk(area)]
    named = read_named(control, folder, now, {file.path for file in stored})
    return judge(control.pipeline, stored, named, _read_condemned(files), now, grace)


def sweep(
    control: LogControl, folder: LogFolder, hold: LogHold, grace: int, clock: Clock = wall_clock
) -> Swept:
    """Remove the orphans whose grace time has ended, under a lease that the caller holds."""
    swept = look_for_orphans(control, folder, grace, clock())
    files = Folder(control.pipeline, folder.root)
    hold.check()
    _write_condemned(files, (*swept.removed, *swept.waiting))
    reach(FaultPoint.SWEEP_CONDEMNED)
    for orphan in swept.removed:
        hold.check()
        files.remove(orphan.path)
        reach(FaultPoint.SWEEP_REMOVED)
    if swept.removed:
        hold.check()
        _write_condemned(files, swept.waiting)
    return swept


def sweep_log(
    control: LogControl, folder: LogFolder, holder: str, grace: int, clock: Clock = wall_clock
) -> Swept:
    """As ``sweep``, with a lease that is taken and released here."""
    with holding(take_log(control, holder, clock)) as hold:
        return sweep(control, folder, hold, grace, clock)


def read_named(control: LogControl, folder: LogFolder, now: int, stored: Collection[str]) -> NamedFiles:
    """The files that must not be removed now; of those that are stored."""
    # The head first: readers of an older manifest were registered before this one became the log.
    head = control.log_head()
    manifests = {path for reader in readers(control, now) for path in reader.manifests}
    named = _Named(stored)
    if head.manifest is not None:
        named.add(head.manifest)
        named.add_manifest(read_manifest(control.pipeline, folder, head))
    for path in sorted(manifests - {head.manifest}):
        named.add(path)
        # A reader that resumed after its deadline may name a manifest or lists that were removed.
        if manifest := folder.read_older_manifest(path):
            named.add_manifest(manifest, may_lack_lists=True)
    return NamedFiles(head.t, head.end, named.found, read_lease(control).plans)


class _Named:
    """Gathers the stored files that manifests name. A list that several manifests name is read once."""

    def __init__(self, stored: Collection[str]) -> None:
        self._stored = stored
        self._seen: set[str] = set()
        self.found: set[str] = set()

    def add(self, path: str) -> None:
        """Add a path, where such a file is stored."""
        if path in self._stored:
            self.found.add(path)

    def add_manifest(self, manifest: Manifest, *, may_lack_lists: bool = False) -> None:
        """Add the files and lists of a manifest.

        Raises ``FileMissing`` where a list does not exist, unless ``may_lack_lists``: without it, the files
        that the log has would seem to be orphans.
        """
        waiting: list[ClosedPart] = [*manifest.closed, *([manifest.active] if manifest.active.files else [])]
        while waiting:
            part = waiting.pop()
            if isinstance(part, ListLine):
                if part.path in self._seen:
                    continue
                self._seen.add(part.path)
                self.add(part.path)
            try:
                if isinstance(part, ListLine) and part.level:
                    waiting += manifest.lists.read_index(part)
                else:
                    for file in manifest.segment_of(part).files:
                        self.add(file.path)
            except FileMissing:
                if not may_lack_lists:
                    raise


def _read_condemned(files: Folder) -> dict[str, int]:
    found: dict[str, int] = json.loads(files.read(CONDEMNED)) if files.exists(CONDEMNED) else {}
    return found


def _write_condemned(files: Folder, orphans: Sequence[Orphan]) -> None:
    condemned = {orphan.path: orphan.since for orphan in orphans}
    if condemned != _read_condemned(files):
        files.replace(CONDEMNED, (json.dumps(condemned, indent=1, sort_keys=True) + "\n").encode(), "sweep")
