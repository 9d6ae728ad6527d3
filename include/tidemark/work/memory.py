"""Dead letters and history in memory: for tests of what stands on them. Nothing survives the process."""

from collections.abc import Sequence
from threading import Lock

from tidemark.work.days import day_of
from tidemark.work.entry import DeadLetter, Run


class MemoryArchive:
    """The contract of ``Archive`` on dictionaries."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._letters: dict[tuple[int, str, int], DeadLetter] = {}
        self._dug_up: set[tuple[int, str, int]] = set()
        self._runs: dict[str, Run] = {}

    def bury(self, letter: DeadLetter) -> None:
        """See ``Archive.bury``."""
        with self._lock:
            self._letters[_identity(letter)] = letter

    def letters(self, day: str) -> Sequence[DeadLetter]:
        """See ``Archive.letters``."""
        with self._lock:
            left = [letter for place, letter in self._letters.items() if place not in self._dug_up]
        return sorted((one for one in left if day_of(one.started) == day), key=_identity, reverse=True)

    def dig_up(self, letter: DeadLetter, now: int) -> None:
        """See ``Archive.dig_up``."""
        with self._lock:
            self._dug_up.add(_identity(letter))

    def record(self, run: Run) -> None:
        """See ``Archive.record``."""
        with self._lock:
            old = self._runs.get(run.token)
            if old is None or old.ended <= run.ended:
                self._runs[run.token] = run

    def runs(self, day: str) -> Sequence[Run]:
        """See ``Archive.runs``."""
        with self._lock:
            found = [run for run in self._runs.values() if day_of(run.started) == day]
        return sorted(found, key=lambda run: (run.started, run.token), reverse=True)


def _identity(letter: DeadLetter) -> tuple[int, str, int]:
    return (letter.started, letter.key, letter.version)
