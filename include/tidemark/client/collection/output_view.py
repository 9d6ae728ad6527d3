"""One writer's output as a reading process knows it: kept in memory, read again only where that matters.

An old output answers for every time before its frontier, because history is not rewritten. From its frontier
on it is read again, and a frontier that a crashed delivery left behind is advanced. Nothing here reads rows.
"""

import time
from collections.abc import Callable

from tidemark.outputs.model.output import Output
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress, advance_frontier

MAX_AGE = 1.0
"""How old the newest known frontier may be, in seconds, when the newest state is asked for."""


class OutputView:
    """The output of one writer. Threads may share it."""

    def __init__(
        self, store: OutputStore, progress: Progress, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.store, self.progress, self._clock = store, progress, clock
        self._known: Output | None = None
        self._read_at = -float("inf")

    def recent(self) -> Output:
        """The output, read within the last second. Raises OutputMissing."""
        known = self._known
        if known is None or self._clock() - self._read_at > MAX_AGE:
            return self.fresh()
        return known

    def fresh(self) -> Output:
        """The output as it is now. Raises OutputMissing."""
        began = self._clock()
        return self._keep(self.store.require(), began)

    def advanced(self) -> Output:
        """The output as it is now, with everything readable that its active rendition has finished."""
        began = self._clock()
        return self._keep(advance_frontier(self.store, self.progress), began)

    def covering(self, t: int) -> Output:
        """An output that can judge a time: one whose frontier is later, else the newest one."""
        if (known := self._known) is not None and t < known.frontier:
            return known
        found = self.fresh()
        return found if t < found.frontier else self.advanced()

    def beyond(self, output: Output) -> Output:
        """The output where its frontier has moved on, else the given one; cheaper than ``fresh``."""
        return self.fresh() if self.store.frontier() > output.frontier else output

    def _keep(self, found: Output, began: float) -> Output:
        known = self._known
        # Two threads may finish in another order than they began.
        if known is None or found.frontier >= known.frontier:
            self._known, self._read_at = found, began
        return found
