"""Holds: a process needs all messages after an id, so compaction must not go beyond that id.

One row per holder in the log object. Unlike a lease, a hold has no deadline: it ends when it is released.
Until then every plan of a compaction names it.
"""

import json
from dataclasses import asdict, dataclass

from tidemark.consensus.objects import Change, Snapshot
from tidemark.log.state.control import LogControl

PREFIX = "hold/"


@dataclass(frozen=True, slots=True)
class Hold:
    """Compaction removes no message with an id greater than ``after``."""

    holder: str
    after: int

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{PREFIX}{self.holder}"


def add_hold(control: LogControl, hold: Hold) -> Hold:
    """Add a hold; an existing hold of the same holder is kept and returned."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, Hold]:
        if hold.row in snapshot.rows:
            return None, Hold(**json.loads(snapshot.rows[hold.row]))
        return Change({hold.row: json.dumps(asdict(hold))}), hold

    return control.amend_log([hold.row], decide)


def release_hold(control: LogControl, holder: str) -> None:
    """Remove the hold of a holder, if it has one."""
    row = Hold(holder, 0).row
    control.amend_log([row], lambda snapshot: (Change(deletes=[row]) if row in snapshot.rows else None, None))


def holds(control: LogControl) -> list[Hold]:
    """All holds, by holder."""
    return [Hold(**json.loads(body)) for body in control.log_rows(PREFIX).values()]
