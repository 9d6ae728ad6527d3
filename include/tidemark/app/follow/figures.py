"""Latency figures in bounded memory: how long records took from Kafka's timestamp to every target.

Pure. A histogram has a fixed number of bins, whatever it counts; a percentile is the upper bound of its bin,
so it is at most ``RATIO`` times too high and never too low.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

RATIO = 1.02
LEAST, MOST = 0.001, 86_400.0
"""The latencies, in seconds, that the first and the last bin stand for."""

_BOUNDS: NDArray[np.float64] = LEAST * RATIO ** np.arange(
    int(np.ceil(np.log(MOST / LEAST) / np.log(RATIO))) + 1, dtype=np.float64
)


@dataclass
class LatencyHistogram:
    """Latencies, counted in bins that grow by ``RATIO``."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_BOUNDS), dtype=np.int64))

    def add(self, seconds: NDArray[np.float64]) -> None:
        """Count latencies; a negative one (the clock of a producer is ahead) counts as none."""
        places = np.minimum(np.searchsorted(_BOUNDS, np.maximum(seconds, 0.0)), len(_BOUNDS) - 1)
        self.counts += np.bincount(places, minlength=len(_BOUNDS))

    def merge(self, other: "LatencyHistogram") -> None:
        """Add what another histogram counted."""
        self.counts += other.counts

    @property
    def count(self) -> int:
        """The number of latencies."""
        return int(self.counts.sum())

    def percentile(self, share: float) -> float | None:
        """The latency in seconds that ``share`` (0 to 1) of the records did not exceed; None without any."""
        if not self.count:
            return None
        wanted = max(1, int(np.ceil(share * self.count)))
        return float(_BOUNDS[int(np.searchsorted(np.cumsum(self.counts), wanted))])


def latencies(timestamps: Sequence[int] | NDArray[np.int64], readable: int) -> NDArray[np.float64]:
    """Seconds from Kafka's timestamps (ms) to ``readable`` (µs); records without a timestamp are left out."""
    stamps = np.asarray(timestamps, dtype=np.int64)
    return (readable / 1_000 - stamps[stamps >= 0]) / 1_000


@dataclass
class Figures:
    """What happened in a minute, or in a whole run."""

    rounds: int = 0
    idle: int = 0
    records: int = 0
    busy: float = 0.0
    """Seconds that rounds took which were not idle."""
    lag: float = 0.0
    """See ``Followed.lag``, as of the last round."""
    histogram: LatencyHistogram = field(default_factory=LatencyHistogram)

    def note_idle(self, waiting: float = 0.0) -> None:
        """Count a round that found nothing new; for ``waiting`` seconds something is not delivered."""
        self.rounds, self.idle, self.lag = self.rounds + 1, self.idle + 1, waiting

    def note(self, records: int, took: NDArray[np.float64], seconds: float, waiting: float = 0.0) -> None:
        """Count a round that delivered ``records`` with these latencies and took so many seconds."""
        self.rounds, self.records, self.busy = self.rounds + 1, self.records + records, self.busy + seconds
        self.lag = max(waiting, float(took.max())) if len(took) else waiting
        self.histogram.add(took)

    def add(self, other: "Figures") -> None:
        """Add the figures of a later time."""
        self.rounds, self.idle = self.rounds + other.rounds, self.idle + other.idle
        self.records, self.busy, self.lag = self.records + other.records, self.busy + other.busy, other.lag
        self.histogram.merge(other.histogram)

    def to_dict(self) -> dict[str, Any]:
        """For logs and summaries; times in seconds."""
        busy_rounds = self.rounds - self.idle
        return {
            "rounds": self.rounds,
            "idle": self.idle,
            "records": self.records,
            "p50": _rounded(self.histogram.percentile(0.50)),
            "p99": _rounded(self.histogram.percentile(0.99)),
            "lag": round(self.lag, 3),
            "round_seconds": round(self.busy / busy_rounds, 3) if busy_rounds else None,
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
