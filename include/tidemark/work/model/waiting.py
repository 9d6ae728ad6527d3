"""How long a caller waits before it looks at a journal again. Pure: times in, seconds out."""

from collections.abc import Iterable

LONGEST_WAIT = 300.0
"""Seconds after which every caller that waits looks at the journal, woken up or not."""
PAUSED_WAIT = 5.0
"""Seconds between two looks at a journal that is paused: nothing is given out, however much is due."""
BUSY_WAIT = 0.2
"""Seconds while another thread of the process is claiming: what it leaves can be seen only afterwards."""


def seconds_to_wait(
    seconds: float, now: int, looks: Iterable[int | None], *, is_paused: bool = False, is_busy: bool = False
) -> float:
    """How long nothing can become due, no longer than ``seconds``.

    ``looks`` are the times, in ms, at which something may; None where there is none.
    """
    limits = [seconds, LONGEST_WAIT, *((look - now) / 1000 for look in looks if look is not None)]
    limits += [PAUSED_WAIT] if is_paused else []
    limits += [BUSY_WAIT] if is_busy else []
    return max(0.0, min(limits))
