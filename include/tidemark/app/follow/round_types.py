"""What a round of a follow is given, and what it returns. Values only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidemark.delivery.binding_steps import WriteParts
from tidemark.delivery.deliver import Delivered
from tidemark.delivery.state.lease import Reload
from tidemark.delivery.state.positions import Positions
from tidemark.log.capture import CaptureEngine


@dataclass(frozen=True)
class RoundTools:
    """What a round needs beyond the pipeline: the heavy parts, on Spark or in this process.

    Attributes:
        capture: Reads Kafka and audits files.
        write_parts: Writes the parts of a binding.
        reload: The function that reads a writer's state, also in other processes.
        is_engine_error: Whether an error says that the engine is lost: then no writer has failed.
    """

    capture: CaptureEngine
    write_parts: WriteParts
    reload: Callable[[Positions, str], Reload]
    is_engine_error: Callable[[Exception], bool] = lambda error: False


@dataclass(frozen=True)
class RoundDone:
    """What a round did.

    Attributes:
        delivered: The result for every writer that was delivered to.
        records: The number of records that every open writer has since this round.
        took: The latencies of these records, in seconds.
        held: The writers that another process has.
        waiting_since: The time, in µs, of the oldest binding that a writer with an open gate lacks, whichever
            run made it; None where none does. Writers that are left out do not count.
        is_behind: Whether a writer has more to catch up with than a round delivers.
        needs_person: Why writers are left out of the rounds from now on, by the writer's name.
        must_wait: Nothing was done, because the whole pipeline waits for a stopped writer.
    """

    delivered: Mapping[str, Delivered] = field(default_factory=dict)
    records: int = 0
    took: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    held: Sequence[str] = ()
    waiting_since: int | None = None
    is_behind: bool = False
    needs_person: Mapping[str, str] = field(default_factory=dict)
    must_wait: bool = False

    @property
    def closed(self) -> list[str]:
        """The writers whose gates closed in this round."""
        return [name for name, one in self.delivered.items() if one.closed_now]

    @property
    def failures(self) -> list[str]:
        """Why something was not delivered although the gate is open, a sentence for each writer."""
        return [f"{name}: {one.failure}" for name, one in self.delivered.items() if one.failure]
