"""Holds: somebody is in the middle of something and needs what comes behind an id, so compaction waits there.

One row a holder in the log object. Unlike a lease it has no deadline: it ends when its holder says so, and
until then every plan of a compaction names it.
"""

import json
from dataclasses import asdict, dataclass

from tidemark.consensus.objects import Change, Snapshot
from tidemark.log.state.control import LogControl

PREFIX = "hold/"


@dataclass(frozen=True, slots=True)
class Hold:
    """Messages behind an id stay in the log."""

    holder: str
    after: int

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{PREFIX}{self.holder}"


def add_hold(control: LogControl, hold: Hold) -> Hold:
    """Keep what comes behind an id; a hold that its holder has already stays as it is."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, Hold]:
        if hold.row in snapshot.rows:
            return None, Hold(**json.loads(snapshot.rows[hold.row]))
        return Change({hold.row: json.dumps(asdict(hold))}), hold

    return control.amend_log([hold.row], decide)


def release_hold(control: LogControl, holder: str) -> None:
    """Keep nothing for a holder any more."""
    row = Hold(holder, 0).row
    control.amend_log([row], lambda snapshot: (Change(deletes=[row]) if row in snapshot.rows else None, None))


def holds(control: LogControl) -> list[Hold]:
    """All holds, by holder."""
    return [Hold(**json.loads(body)) for body in control.log_rows(PREFIX).values()]
