"""A driver's session that counts what its statements read: for tests about tombstones."""

import re
from typing import Any


class TracedSession:
    """A session that traces every statement and keeps how many tombstones each of them has read."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.statements = 0
        self.tombstones = 0

    def prepare(self, query: str) -> Any:
        return self._session.prepare(query)

    def execute(self, *statement: Any) -> Any:
        done = self._session.execute(*statement, trace=True)
        events = done.get_query_trace(max_wait_sec=30).events
        said = [re.search(r"and (\d+) tombstone", event.description) for event in events]
        self.statements += 1
        self.tombstones += sum(int(found[1]) for found in said if found)
        return done
