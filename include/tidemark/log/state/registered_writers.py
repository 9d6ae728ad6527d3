"""The writers that a log has to wait for: one row each in the log object.

A writer is an object of its own, and nothing lists such objects reliably. So its name is put here before it
is registered, and the position it goes back to before it is rewound; both are refused while somebody has the
log for a compaction. Whoever takes the log afterwards finds every writer there is, and none can appear or go
back without changing the object by whose compare-and-set a compaction is published.
"""

import json
from dataclasses import asdict, dataclass

from tidemark.consensus.objects import Change, Snapshot
from tidemark.log.state.control import HEAD, LogControl, LogHead
from tidemark.log.state.forgotten import MARK, refuse_marked
from tidemark.log.state.lease import LEASE_ROW, refuse_while_held

PREFIX = "writer/"


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A writer as the log knows it."""

    name: str
    version: int
    """The writer's when this was said of it."""
    least: int | None = None
    """The position that it is about to go back to: as long as it has this version, that may happen yet."""

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{PREFIX}{self.name}"

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(asdict(self))

    def position(self, version: int, position: int) -> int:
        """The lowest position that a writer with this version and position has, or may have at any time."""
        return min(position, self.least) if self.least is not None and self.version == version else position


def enrol(control: LogControl, writer: Enrolled, now: int, refused: str) -> LogHead:
    """Put a writer on the log's list, or what is about to become of it; the log's head at that moment.

    Refused while somebody has the log: ``refused`` says what is.
    """

    def decide(snapshot: Snapshot) -> tuple[Change, LogHead]:
        refuse_while_held(control.pipeline, snapshot, now, refused)
        refuse_marked(control.pipeline, snapshot)
        return Change({writer.row: writer.to_json()}), LogHead.of(snapshot)

    return control.amend_log([HEAD, LEASE_ROW, MARK], decide)


def ensure_enrolled(control: LogControl, writer: Enrolled) -> None:
    """Put a writer on the list that was registered before there was one."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        known = writer.row in snapshot.rows
        return (None if known else Change({writer.row: writer.to_json()})), None

    control.amend_log([writer.row], decide)


def withdraw(control: LogControl, writer: Enrolled) -> None:
    """Take a writer off the list, unless something else was said of it since."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        same = snapshot.rows.get(writer.row) == writer.to_json()
        return (Change(deletes=[writer.row]) if same else None), None

    control.amend_log([writer.row], decide)


def enrolled(control: LogControl) -> dict[str, Enrolled]:
    """All writers on the list, by name."""
    found = (Enrolled(**json.loads(body)) for body in control.log_rows(PREFIX).values())
    return {one.name: one for one in found}
