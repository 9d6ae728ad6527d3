"""The ring of tokens in pieces that together are all of it, each token in exactly one. Asks nobody.

Only for the Murmur3 partitioner, whose tokens are the 64-bit numbers but the lowest: that one stands for
"from the beginning". The range that goes past the last token to the first is cut there into two.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

LOWEST, HIGHEST = -(2**63), 2**63 - 1
RING = HIGHEST - LOWEST


@dataclass(frozen=True, slots=True, order=True)
class TokenRange:
    """Tokens above ``after`` up to and including ``upto``."""

    after: int
    upto: int

    def __str__(self) -> str:
        return f"tokens ({self.after}, {self.upto}]"

    @property
    def width(self) -> int:
        """How many tokens it has."""
        return self.upto - self.after

    def halves(self) -> list["TokenRange"]:
        """Two ranges that together are this one; itself where it has only one token."""
        middle = self.after + self.width // 2
        if middle == self.after:
            return [self]
        return [TokenRange(self.after, middle), TokenRange(middle, self.upto)]


def cut_ring(tokens: Iterable[int], pieces: int) -> list[TokenRange]:
    """About so many pieces of about the same width, in order.

    ``tokens`` are those of the nodes: no piece goes past one, so each has the same replicas all over.
    """
    ends = sorted({LOWEST, HIGHEST, *tokens})
    found = []
    for after, upto in pairwise(ends):
        width = upto - after
        count = min(max(round(width * pieces / RING), 1), width)
        cuts = [after + width * number // count for number in range(count + 1)]
        found += [TokenRange(*each) for each in pairwise(cuts)]
    return found


def deal(ranges: Sequence[TokenRange], hands: int) -> list[list[TokenRange]]:
    """The ranges in at most so many groups of about the same width; neighbours stay together."""
    total, passed = sum(each.width for each in ranges), 0
    groups: dict[int, list[TokenRange]] = {}
    for each in ranges:
        groups.setdefault((2 * passed + each.width) * hands // (2 * total), []).append(each)
        passed += each.width
    return list(groups.values())
