"""The part of ``make demo`` about work journals: a few entries done, one merged, one expired, one dead."""

import time
from datetime import timedelta

from tidemark.cli.output.work import figures_lines
from tidemark.connections import CassandraConnection
from tidemark.errors import TidemarkError, with_fields
from tidemark.pipeline.connections import Lookup
from tidemark.work.client import Work
from tidemark.work.loader import find_journal

JOURNAL = "demo"
SHORT_LIVED = timedelta(seconds=1)
PATIENCE = 10.0


@with_fields
class DemoExpiryUnseen(TidemarkError):
    """An entry is still there after its expiry."""

    key: str

    def __str__(self) -> str:
        return f"{JOURNAL}: {self.key} is still there {PATIENCE:.0f} s after it was inserted. See its file."


def work_lines(look_up: Lookup) -> list[str]:
    """Insert entries, claim and end them; returns the outcome of each."""
    declared = find_journal(JOURNAL)
    cassandra = CassandraConnection.from_airflow(declared.connection, look_up(declared.connection))
    work, _ = Work.create(declared, cassandra=cassandra, owner="make demo")
    lines = [f"\nWork journal {JOURNAL}:"]
    for page, priority in (("page/1", 20), ("page/2", 180), ("page/3", 10)):
        lines += [f"  {page}, priority {priority}: {work.insert(page, {'revision': 1}, priority=priority)}"]
    lines += [f"  page/2 again: {work.insert('page/2', {'revision': 2})}"]
    for item in work.claim(10):
        outcome = work.fail(item, "no such page") if item.key == "page/3" else work.done(item)
        lines += [f"  {item.key}, revision {item.payload['revision']}: claimed, {outcome}"]
    work.insert("page/4", {"revision": 1}, expires=SHORT_LIVED)
    _wait_for_expiry(work, "page/4")
    lines += ["  page/4: expired before anything claimed it"]
    lines += [f"  {line}" for line in figures_lines(work.stats())]
    return [*lines, f"  .venv/bin/tidemark work dead {JOURNAL}        the dead letter, with its error"]


def _wait_for_expiry(work: Work, key: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while work.get(key) is not None:
        if time.monotonic() > deadline:
            raise DemoExpiryUnseen(key)
        time.sleep(0.2)
