"""What has arrived at every open writer, and what the slowest of them still waits for.

The latency of a binding that this run has published is measured once, when every open writer has it. Reads
timestamps of the log's files, and a binding only where a writer is behind.
"""

import numpy as np
from numpy.typing import NDArray

from tidemark.app.follow.figures import latencies
from tidemark.delivery.published_log import PublishedLog
from tidemark.log.model.binding import Binding

MOST_WAITING = 1_000
"""The most bindings whose latency is still to be measured: more are waiting only while a writer is held."""


class Arrivals:
    """The bindings of one run that are on their way, oldest first."""

    def __init__(self) -> None:
        self._expected: list[Binding] = []
        self._first_lacking: Binding | None = None

    def expect(self, binding: Binding) -> None:
        """Measure a binding when every open writer has it."""
        self._expected.append(binding)
        del self._expected[:-MOST_WAITING]

    def arrived(self, least: int, log: PublishedLog, now: int) -> tuple[int, NDArray[np.float64]]:
        """The number of records that every open writer has since the last call, and their latencies.

        ``least`` is the lowest position of these writers.
        """
        finished = [one for one in self._expected if one.end <= least]
        self._expected = [one for one in self._expected if one.end > least]
        stamps = [
            batch.column("timestamp").to_numpy()
            for one in finished
            for file in log.manifest.files_of(one)
            for batch in log.folder.read_file(file, ["timestamp"], one.base, one.end)
        ]
        every = np.concatenate(stamps) if stamps else np.zeros(0, dtype=np.int64)
        return len(every), latencies(every, now)

    def waiting_since(self, least: int, log: PublishedLog) -> int | None:
        """The time, in µs, of the first published binding beyond ``least``, whichever run made it; None where
        there is none."""
        if least >= log.end:
            return None
        known = [one for one in (self._first_lacking, *self._expected) if one is not None]
        found = next((one for one in known if one.base <= least + 1 <= one.end), None)
        self._first_lacking = found or next(log.bindings.after(least))
        return self._first_lacking.t
