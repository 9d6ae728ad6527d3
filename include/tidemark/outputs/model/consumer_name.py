"""The names of consumers: a rendition of a writer is delivered to under a name of its own.

The first rendition's consumer has the writer's name, as it had before there were renditions. The others have
a dot in theirs, which names in pipeline files may not have, so none of them is the name of another writer.
Which rendition is active is not part of any name.
"""

import re

_NUMBERED = re.compile(r"([^.]+)\.r([1-9][0-9]*)")


def consumer_name(writer: str, number: int) -> str:
    """The name under which a rendition's position, gate and lease are stored."""
    return writer if number == 1 else f"{writer}.r{number}"


def split_consumer(name: str) -> tuple[str, int | None]:
    """The writer, and the number of the rendition where the name has one: ``accounts.r2``.

    For names that operators give, ``accounts`` alone means the active rendition and ``accounts.r1`` the first
    one. For stored names, ``accounts`` is the first one's.
    """
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)
