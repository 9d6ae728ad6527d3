"""sweep: remove from a log's folder what nobody names any more.

Only what the log itself has written is ever touched: data files, manifests, records of captures, plans and
what is left in staging. Everything that belongs to an unpublished binding stays, and so does whatever the
current manifest, the manifest of a reader or the plan of a compaction names. The rest is condemned first, and
removed by a later sweep, when it has been condemned for the grace time: somebody may read it without having
said so. Audits stay: they are the evidence for what was published.

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
from tidemark.log.files.folder import STAGING, Folder, StoredFile
from tidemark.log.files.parquet import LogFolder
from tidemark.log.publish import read_manifest
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import LogHold, read_lease, take_log
from tidemark.log.state.readers import readers

AREAS = ("files", "manifests", "captured", "plans", STAGING)
"""What is swept; nothing else in the folder is."""
CONDEMNED = "condemned.json"
"""Since when (µs) which files are nobody's, as the sweeps before have seen it."""
PLAN_LIFE = 7 * 24 * 3600 * SECOND
"""How long the plan of a compaction stays at least: somebody may be asked to approve it."""
PLAN_DIGITS = 12
"""How much of a plan's digest the names of its files carry."""

_DATA = re.compile(r"files/(?P<first>\d{20})-(?P<last>\d{20})(-(?P<plan>[0-9a-f]{12}))?\.parquet")
_MANIFEST = re.compile(r"manifests/(?P<t>\d{20})-[0-9a-f]{12}\.json")
_CAPTURED = re.compile(r"captured/(?P<t>\d{20})\.json")
_PLAN = re.compile(r"plans/(?P<plan>[0-9a-f]{64})(\.files)?\.json")
_STAGED = re.compile(r"staging/(?P<area>[^/]+)(/.*)?")


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """What must stay."""

    t: int
    end: int
    """Up to where the log is published: everything beyond is somebody's work."""
    files: frozenset[str]
    """Of the current manifest and of those that are being read, and these manifests themselves."""
    plan: str | None = None
    """The digest of the plan that a compaction carries out."""

    def is_orphan(self, path: str) -> bool:
        """Whether nobody needs a file; one that the log did not name is none of its business."""
        if path in self.files:
            return False
        if found := _DATA.fullmatch(path):
            return int(found["first"]) <= self.end and not self._is_planned(found["plan"])
        if found := _MANIFEST.fullmatch(path) or _CAPTURED.fullmatch(path):
            return int(found["t"]) <= self.t
        if found := _PLAN.fullmatch(path):
            return not self._is_planned(found["plan"])
        if found := _STAGED.fullmatch(path):
            area = found["area"]
            return int(area) <= self.t if area.isdecimal() else not self._is_planned(path)
        return False

    def _is_planned(self, name: str | None) -> bool:
        return self.plan is not None and name is not None and self.plan[:PLAN_DIGITS] in name


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that nobody names."""

    path: str
    bytes: int
    since: int
    """When a sweep saw so first, in µs."""

    def goes_at(self, grace: int) -> int:
        """When it may be removed."""
        return self.since + (max(grace, PLAN_LIFE) if _PLAN.fullmatch(self.path) else grace)


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removes, and what has to wait for it."""

    pipeline: str
    removed: tuple[Orphan, ...]
    waiting: tuple[Orphan, ...]

    @property
    def bytes(self) -> int:
        """How much the folder becomes smaller."""
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
    """Which of the stored files go now, and which later; the same question has the same answer."""
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
    """What a sweep would do; nothing is changed."""
    # In this order: what is published or opened after the list was made is newer than everything on it.
    files = Folder(control.pipeline, folder.root)
    stored = [file for area in AREAS for file in files.walk(area)]
    named = read_named(control, folder, now)
    return judge(control.pipeline, stored, named, _read_condemned(files), now, grace)


def sweep(
    control: LogControl, folder: LogFolder, hold: LogHold, grace: int, clock: Clock = wall_clock
) -> Swept:
    """Remove what was condemned long enough ago, under a lease that somebody has already."""
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
    """The same, with a lease of its own."""
    with holding(take_log(control, holder, clock)) as hold:
        return sweep(control, folder, hold, grace, clock)


def read_named(control: LogControl, folder: LogFolder, now: int) -> NamedFiles:
    """What must stay now."""
    # The head first: whoever opens an older manifest has said so before this one became the log.
    head = control.log_head()
    manifests = {path for reader in readers(control, now) for path in reader.manifests}
    files = {*_files_of(control.pipeline, folder, head, manifests), *manifests}
    if head.manifest is not None:
        files.add(head.manifest)
    return NamedFiles(head.t, head.end, frozenset(files), read_lease(control).plan)


def _files_of(pipeline: str, folder: LogFolder, head: LogHead, manifests: Collection[str]) -> Collection[str]:
    found = {file.path for file in read_manifest(pipeline, folder, head).files}
    for path in sorted(manifests):
        # A reader that came back after its time was over may name one that is gone.
        if path != head.manifest and (manifest := folder.read_older_manifest(path)):
            found.update(file.path for file in manifest.files)
    return found


def _read_condemned(files: Folder) -> dict[str, int]:
    found: dict[str, int] = json.loads(files.read(CONDEMNED)) if files.exists(CONDEMNED) else {}
    return found


def _write_condemned(files: Folder, orphans: Sequence[Orphan]) -> None:
    condemned = {orphan.path: orphan.since for orphan in orphans}
    if condemned != _read_condemned(files):
        files.replace(CONDEMNED, (json.dumps(condemned, indent=1, sort_keys=True) + "\n").encode(), "sweep")
