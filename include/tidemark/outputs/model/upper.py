"""How far a rendition has come, as a time: every binding before its ``upper`` is finished.

Bound, captured or published makes no difference: a binding that exists and is not finished holds the upper
back. Nothing here reads the bindings; the order in which the caller reads them matters, see ``upper_of``.
"""

from collections.abc import Iterable

from tidemark.log.model.binding import Binding


def upper_of(bindings_upper: int, reached: int, bindings: Iterable[Binding]) -> int:
    """The first time that a rendition has not finished.

    The parameters are in the order in which they must be read. A binding that is made after
    ``bindings_upper`` was read has a time at or after it, so the result is too low at worst. Read in the
    other order, a binding made in between would be below the result without being finished.

    Args:
        bindings_upper: The ``upper`` of the bindings object.
        reached: The highest position that the rendition ever had, so that a rewind moves no upper back.
        bindings: All bindings that may be unfinished, oldest first: those with ids above ``reached``, and any
            number of older ones.
    """
    return next((one.t for one in bindings if one.end > reached), bindings_upper)
