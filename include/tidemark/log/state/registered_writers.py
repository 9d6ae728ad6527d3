"""The writers that compaction of a log has to wait for: one row each in the log object.

Each writer is an object of its own, and objects cannot be listed reliably. So a writer's name is recorded
here before it is registered, and its new position before it is rewound. Both are refused while a compaction
holds the log's lease. A later holder therefore knows every writer, and a writer that is added or rewound
changes the object whose compare-and-set publishes a compaction.
"""

import json
from dataclasses import asdict, dataclass

from tidemark.consensus.lease_wait import PATIENCE
from tidemark.consensus.objects import Change, Snapshot
from tidemark.log.state.control import HEAD, LogControl, LogHead
from tidemark.log.state.forgotten import MARK, refuse_marked
from tidemark.log.state.lease import LEASE_ROW, after_merge, refuse_while_held

PREFIX = "writer/"


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The log's row of a writer.

    Attributes:
        name: The writer's name.
        version: The version of the writer's object when this row was written.
        least: The position of a rewind in progress: it may still happen while the writer has this version.
    """

    name: str
    version: int
    least: int | None = None

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{PREFIX}{self.name}"

    def to_json(self) -> str:
        """The row in the control plane."""
        return json.dumps(asdict(self))

    def position(self, version: int, position: int) -> int:
        """The lowest position that a writer with this version and position has or may get."""
        return min(position, self.least) if self.least is not None and self.version == version else position


def enrol(
    control: LogControl, writer: Enrolled, now: int, refused: str, patience: float = PATIENCE
) -> LogHead:
    """Record a writer before it is registered or rewound; returns the log's head at that version.

    Raises ``LogHeld`` while the log's lease is held, with ``refused`` as the text of what was refused. A
    follow that merges small files is waited for, ``patience`` seconds at most.
    """

    def decide(snapshot: Snapshot) -> tuple[Change, LogHead]:
        refuse_while_held(control.pipeline, snapshot, now, refused)
        refuse_marked(control.pipeline, snapshot)
        return Change({writer.row: writer.to_json()}), LogHead.of(snapshot)

    return after_merge(lambda: control.amend_log([HEAD, LEASE_ROW, MARK], decide), patience=patience)


def ensure_enrolled(control: LogControl, writer: Enrolled) -> None:
    """Record a writer that an older version registered without a row here."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        known = writer.row in snapshot.rows
        return (None if known else Change({writer.row: writer.to_json()})), None

    control.amend_log([writer.row], decide)


def withdraw(control: LogControl, writer: Enrolled) -> None:
    """Remove the row of a writer, unless it was changed since."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        same = snapshot.rows.get(writer.row) == writer.to_json()
        return (Change(deletes=[writer.row]) if same else None), None

    control.amend_log([writer.row], decide)


def enrolled(control: LogControl) -> dict[str, Enrolled]:
    """All recorded writers, by name."""
    found = (Enrolled(**json.loads(body)) for body in control.log_rows(PREFIX).values())
    return {one.name: one for one in found}
