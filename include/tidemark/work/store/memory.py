"""Dead letters and history in memory, for tests."""

from collections.abc import Iterable
from threading import Lock

from tidemark.work.model.days import day_of
from tidemark.work.model.entry import DeadEntry, KeptLetter, Run, Seen

Identity = tuple[int, str, int]
"""``DeadEntry.identity``."""


class MemoryArchive:
    """``Archive`` in memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._letters: dict[tuple[str, Identity], DeadEntry] = {}
        self._dug_up: set[tuple[str, Identity]] = set()
        self._seen: dict[tuple[str, Identity], Seen] = {}
        self._runs: dict[str, Run] = {}

    def bury(self, letter: DeadEntry) -> None:
        """See ``Archive.bury``."""
        with self._lock:
            self._letters[_place(letter)] = letter

    def letters(self, days: Iterable[str]) -> Iterable[KeptLetter]:
        """See ``Archive.letters``."""
        with self._lock:
            letters, dug_up, looked_at = dict(self._letters), set(self._dug_up), dict(self._seen)
        seen: set[Identity] = set()
        for day in days:
            of_day = sorted((place for place in letters if place[0] == day), reverse=True)
            for place in of_day:
                if place[1] not in seen and place not in dug_up:
                    yield KeptLetter(letters[place], looked_at.get(place))
                seen.add(place[1])

    def dig_up(self, letter: DeadEntry, now: int) -> None:
        """See ``Archive.dig_up``."""
        with self._lock:
            self._dug_up.add(_place(letter))

    def see(self, letter: DeadEntry, seen: Seen) -> None:
        """See ``Archive.see``."""
        with self._lock:
            old = self._seen.get(_place(letter))
            if old is None or old.at <= seen.at:
                self._seen[_place(letter)] = seen

    def record(self, run: Run) -> None:
        """See ``Archive.record``."""
        with self._lock:
            old = self._runs.get(run.token)
            if old is None or old.ended <= run.ended:
                self._runs[run.token] = run

    def runs(self, days: Iterable[str]) -> Iterable[Run]:
        """See ``Archive.runs``."""
        with self._lock:
            newest = sorted(self._runs.values(), key=lambda run: (run.started, run.token), reverse=True)
        for day in days:
            yield from (run for run in newest if day_of(run.ended) == day)


def _place(letter: DeadEntry) -> tuple[str, Identity]:
    return day_of(letter.died), letter.identity
