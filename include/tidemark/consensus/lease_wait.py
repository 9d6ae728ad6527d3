"""Waiting for a lease that a follow gives back in a moment: a writer's, for a round; a log's, for a merge.

Other holders are not waited for: a delivery or a compaction may take hours.
"""

import time
from collections.abc import Iterator

from tidemark.consensus.lease import Lease

FOLLOW = ".follow"
"""How the first word of a holder ends that takes leases for a follow."""
PATIENCE = 20.0
"""Seconds to wait for a follow: its rounds and merges take a second or two."""
SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two attempts, the first and the last ones."""


def is_of_follow(holder: str) -> bool:
    """Whether a follow holds a lease by this name: it will give it back in a moment."""
    return holder.split(" ")[0].endswith(FOLLOW)


def is_awaited(lease: Lease, holder: str) -> bool:
    """Whether ``holder`` waits for a lease of another process. A follow itself does not wait: of two that
    follow one pipeline, one is dead, and it must not wait for its own merge."""
    return is_of_follow(lease.holder) and not is_of_follow(holder)


def attempts(patience: float, longest: float = LONGEST) -> Iterator[bool]:
    """Yields whether this attempt is the last one, ``patience`` seconds after the first, with growing pauses
    of ``longest`` seconds at most."""
    deadline, pause = time.monotonic() + patience, SHORTEST
    while time.monotonic() < deadline:
        yield False
        time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
        pause = min(2 * pause, longest)
    yield True
