"""The token ring, cut into ranges that cover it without overlap. Pure: no cluster is asked.

For the Murmur3 partitioner only, whose tokens are all 64-bit numbers except the lowest, which means "from the
beginning". The range that wraps around from the last token to the first is cut into two.
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
        """The number of tokens in it."""
        return self.upto - self.after

    def halves(self) -> list["TokenRange"]:
        """The two halves of this range; the range itself where it has only one token."""
        middle = self.after + self.width // 2
        if middle == self.after:
            return [self]
        return [TokenRange(self.after, middle), TokenRange(middle, self.upto)]


def cut_ring(tokens: Iterable[int], pieces: int) -> list[TokenRange]:
    """Cut the ring into about so many ranges of about the same width, in order.

    ``tokens`` are those of the nodes. No range crosses one, so all tokens of a range have the same replicas.
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
    """Divide ranges into at most so many groups of about the same width, keeping neighbours together."""
    total, passed = sum(each.width for each in ranges), 0
    groups: dict[int, list[TokenRange]] = {}
    for each in ranges:
        groups.setdefault((2 * passed + each.width) * hands // (2 * total), []).append(each)
        passed += each.width
    return list(groups.values())
