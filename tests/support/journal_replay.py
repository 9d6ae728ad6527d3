"""Journals that Hypothesis draws for compaction; two logs are compared by what their replay makes visible."""

from hypothesis import strategies as st
from tests.support.compaction_samples import Sent, sent

from tidemark.journal.action import Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.codec.record import read_action
from tidemark.journal.comparison import compare
from tidemark.journal.effect import Message
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata
from tidemark.journal.expected import Expected

KEYS = ("a", "b")
EXPIRIES = (None, ExpireAfter(1, "day"), ExpireAfter(5, "hour"))
NEXT = Sent(b"z", topic="orders", headers=(("journal.action", b'{"mark":{"id":"m"}}'),))
"""Keeps everything else out of the active segment."""


def events_of(numbers, expires=None):
    return Events(tuple(EncodedEvent(n, (), "text", f"event {n}") for n in numbers), PayloadMetadata(expires))


@st.composite
def messages(draw, most=14, kinds="aaaaaaaaddddppmrgbwt2n"):
    """One topic's messages; an entity's numbers go on where they were, unless something odd is drawn."""
    reached = dict.fromkeys(KEYS, 0)
    found = []
    for number in range(draw(st.integers(1, most))):
        key, kind = draw(st.sampled_from(KEYS)), draw(st.sampled_from(kinds))
        partition = 1 if kind == "2" else 0
        if kind in "argbw2":
            first = reached[key] + 1
            if kind == "r":
                first = max(1, first - draw(st.integers(1, 3)))
            if kind == "g":
                first += 2
            numbers = range(first, first + draw(st.integers(1, 3)))
            reached[key] = numbers[-1]
            one = sent(
                append(key, number // 3, events_of(numbers, draw(st.sampled_from(EXPIRIES)))), partition
            )
            if kind == "b":
                one = Sent(one.key, b"broken", headers=one.headers)
            if kind == "w":
                other = sent(append(key, 0, events_of(range(first + 1, first + 2))))
                one = Sent(one.key, other.value, headers=one.headers)
        elif kind == "d":
            one = sent(Delete(key, 0, draw(st.integers(1, reached[key] + 3))))
        elif kind in "pt":
            one = sent(Purge(key, 0), 1 if kind == "t" else 0)
            reached[key] = 0
        elif kind == "n":
            one = Sent(key.encode(), b"x", headers=(("journal.action", b"{"),))
        else:
            one = sent(Mark(key, 0, "m"))
        found.append(one)
    return found


def visible(rows, end, size, left_out=frozenset()):
    """What readers see of every entity after the messages up to an id; what cannot be applied is let pass."""
    entities = {}
    for row in rows:
        if row["id"] > end or row["id"] in left_out:
            continue
        headers = [(one["name"], one["value"]) for one in row["headers"]]
        try:
            action = read_action(row["key"], row["value"], row["timestamp"], row["timestamp_type"], headers)
            if action is None:
                continue
            entity = entities.setdefault(action.key, Expected("orders", action.key, segment_size=size))
            entity.apply(
                Message(
                    row["id"],
                    row["partition"],
                    row["offset"],
                    row["write_time"],
                    86_400_000_000 * row["t"],
                    action,
                )
            )
        except (JournalError, Undecodable):
            continue
    return {key: entity.conclude() for key, entity in entities.items()}


def assert_same(full, left, end, size, left_out=frozenset()):
    wanted, found = visible(full, end, size, left_out), visible(left, end, size, left_out)
    for key in wanted:
        if key not in found:
            assert wanted[key].head is None, f"{key} is gone at {end}"
            continue
        differences = compare("orders", key, wanted[key], found[key])
        assert not differences, f"at {end}: {differences}"
        same_dates = getattr(wanted[key].head, "expire_on", None), getattr(found[key].head, "expire_on", None)
        assert same_dates[0] == same_dates[1]
