"""How long a process waits before it checks a journal again. Pure."""

from collections.abc import Iterable

LONGEST_WAIT = 300.0
"""Seconds after which a waiting process checks the journal even if nothing woke it."""
PAUSED_WAIT = 5.0
"""Seconds between two checks of a paused journal."""
BUSY_WAIT = 0.2
"""Seconds to wait while another thread claims: the hints that it does not take are visible only then."""


def seconds_to_wait(
    seconds: float, now: int, looks: Iterable[int | None], *, is_paused: bool = False, is_busy: bool = False
) -> float:
    """The seconds during which nothing can become due, at most ``seconds``.

    ``looks`` are the times, in ms, at which an entry may become due; None where there is none.
    """
    limits = [seconds, LONGEST_WAIT, *((look - now) / 1000 for look in looks if look is not None)]
    limits += [PAUSED_WAIT] if is_paused else []
    limits += [BUSY_WAIT] if is_busy else []
    return max(0.0, min(limits))
