"""How many deletes a synchronisation may send: more look like a dump that is not complete. Pure."""

import re
from dataclasses import dataclass

from tidemark.oplog.sync.errors import LimitRefused, TooManyDeletes

USUAL = "10%"
ALWAYS_ALLOWED = 10
"""So many deletes are in every share: of a few objects, every delete is a large share."""

_NUMBER = re.compile(r"[0-9]{1,15}")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


@dataclass(frozen=True, slots=True)
class DeleteLimit:
    """The most deletes: a number, or a percentage of the objects that are there."""

    number: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str) -> "DeleteLimit":
        """The limit in a text such as ``500`` or ``10%``. Raises ``LimitRefused``."""
        given = text.strip()
        if _NUMBER.fullmatch(given):
            return cls(number=int(given))
        if (found := _SHARE.fullmatch(given)) and float(found[1]) <= 100:
            return cls(percent=float(found[1]))
        raise LimitRefused(text)

    def allowed(self, live: int) -> int:
        """The most deletes where so many objects are there."""
        if self.number is not None:
            return self.number
        return max(ALWAYS_ALLOWED, int(live * (self.percent or 0) / 100))


def refuse_too_many(pipeline: str, deletes: int, live: int, limit: DeleteLimit) -> None:
    """Raise ``TooManyDeletes`` where the limit is passed."""
    if deletes > (allowed := limit.allowed(live)):
        raise TooManyDeletes(pipeline, deletes, live, allowed)
