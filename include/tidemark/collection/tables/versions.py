"""Which versions of a key are obsolete below a time: what ``keep`` removes. Decides only; deletes nothing.

The newest version at or below the time is the state that readers of later times still see, so it stays, also
where it says that the key is gone: it names the partition of the topic that the key belongs to. Everything
before it can be deleted by one range delete for each key.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from tidemark.collection.model.keys import Key


class Version(NamedTuple):
    """A row of a key.

    Attributes:
        key: The key.
        t: The time of its binding.
        message_id: The id of its message.
        write_time: Its write time.
    """

    key: Key
    t: int
    message_id: int
    write_time: int


class OlderVersions(NamedTuple):
    """All versions of a key before the one that stays.

    The delete has the write time of the row that stays, which is later than those of all older rows. It
    covers none of its cells, because the range ends before it.
    """

    key: Key
    t: int
    message_id: int
    write_time: int


def obsolete(newest: Iterable[Version]) -> Iterator[OlderVersions]:
    """The obsolete versions of keys.

    ``newest`` has the versions at or below the time, newest first and those of a key one after the other; two
    of each key are enough. A key with a single one has nothing obsolete.
    """
    for _, versions in groupby(newest, key=lambda version: version.key):
        kept, *older = versions
        if older:
            yield OlderVersions(*kept)
