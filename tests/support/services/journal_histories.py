"""Random histories of many entities as Kafka records, and what a reader has to see when all were replicated.

What is expected is kept beside the records while they are made up: nothing here decodes one, and nothing of
the journal's own code is asked. The histories are unruly within reason: sequence numbers are left out or come
again at the end of an entity, deletes overshoot, come late or come first, purges follow one another. What
stops a writer is not among them.
"""

import json
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

SENT_FROM = 1_750_000_000_000
"""The timestamp of the first record, in ms."""
PARTITIONS = 3
HOUR = 3_600 * 10**9
DAY = 24 * HOUR

JSON = {
    '{"n": 1, "of": [true, null, {}]}': '{"n":1,"of":[true,null,{}]}',
    '{"a":1,"b":2,"a":3}': '{"a":3,"b":2}',
    "[1.0, 2.50, 1e3, -0, 1E-7]": "[1,2.5,1000,0,1E-7]",
    '"žluťoučký \\u00e9 \\n \\u007f /"': '"žluťoučký é \\n \\u007f /"',
    "123456789012345678901234567891": "123456789012345678901234567891",
    "123456789012345678901234567890": "1.2345678901234567890123456789E+29",
    "0": "0",
    "{}": "{}",
}
"""JSON as a producer sends it, and as the tables have it."""
TEXTS = ("", "plain", "líné ☃ 😀", 'with "quotes" and \\', "two\nlines")
BYTES = (b"", b"\x00\xff\xfe", b"bytes " * 20)
TAGS = ((), ("one",), ("one", "two"), ("two", "one", "two"), ("ž", "☃", "a", "b", "c"))
EXPIRIES = {
    '"1 day"': (DAY, "1 day"),
    '"24 hours"': (DAY, "24 hours"),
    '"024h"': (DAY, "24 hours"),
    '"24.0 hours"': (DAY, "1 day"),
    '"1.5 hours"': (HOUR + HOUR // 2, "90 minutes"),
    '"40d"': (40 * DAY, "40 days"),
    "1000": (10**9, "1000 milliseconds"),
}
"""``expireAfter`` as a producer sends it; in nanoseconds, and as the tables have it."""
OTHER_HEADERS: tuple[tuple[tuple[str, bytes], ...], ...] = (
    (),
    (),
    (("trace", b"1f"),),
    (("trace", b"1f"), ("ž", "ů".encode()), ("trace", b"2e")),
    (("journal.action", b"{"), ("empty", b"")),
)
"""Besides the action's own: the last one of a name counts, and a second action is none."""
KEYS = (
    *(b"", b"id", b"ID", "žluťoučký".encode(), "😀".encode()),
    *(b"\xff", b"caf\xe9", b"with space/and:signs", b"\xfe"),
)
"""Keys one would not think of; the others are numbered. Two of them are one entity, so they have to be in one
of three partitions."""

Headers = tuple[tuple[str, bytes], ...]


class Sent(NamedTuple):
    """One Kafka record."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


class Payload(NamedTuple):
    """What an event carries: its type, how it is sent, and how it is stored."""

    kind: str | None = None
    sent: str | bytes | None = None
    stored: str | bytes | None = None


class Event(NamedTuple):
    seq_nr: int
    tags: tuple[str, ...]
    payload: Payload


@dataclass
class Entity:
    """What is known of one entity."""

    seq_nr: int
    delete_to: int | None
    expire_after: int | None = None
    rows: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    """By sequence number and timestamp."""

    def told(self, segment_size: int, bound_at: int | None) -> dict[str, Any]:
        rows = {
            ((number - 1) // segment_size, number, at): cells for (number, at), cells in self.rows.items()
        }
        told: dict[str, Any] = {
            "seq_nr": self.seq_nr,
            "delete_to": self.delete_to,
            "expire_after": self.expire_after,
            "segment_size": segment_size,
            "rows": rows,
        }
        return told if bound_at is None else {**told, "expire_on": self._expires(bound_at)}

    def _expires(self, bound_at: int) -> date | None:
        if self.expire_after is None:
            return None
        return datetime.fromtimestamp((bound_at + self.expire_after // 1000) // 1_000_000, UTC).date()


class History:
    """A history while it is made up, and what it comes to."""

    def __init__(self, seed: int, entities: int = 500) -> None:
        self._random = random.Random(seed)
        self._places = [
            (key, number % PARTITIONS)
            for number, key in enumerate((*KEYS, *(b"entity-%d" % n for n in range(entities - len(KEYS)))))
        ]
        self._offsets = dict.fromkeys(range(PARTITIONS), 0)
        self._now = SENT_FROM
        self._highest: dict[str, int] = {}
        self._entities: dict[str, Entity] = {}

    @property
    def pointers(self) -> dict[int, int]:
        """The last offset of every partition that has one."""
        return {partition: offset - 1 for partition, offset in self._offsets.items() if offset}

    def expected(self, segment_size: int, bound_at: int | None = None) -> dict[str, dict[str, Any]]:
        """What a reader sees of every entity there is; when it expires only if all was bound at once."""
        return {key: entity.told(segment_size, bound_at) for key, entity in self._entities.items()}

    def go_on(self, actions: int) -> list[Sent]:
        """The next records."""
        return list(self._records(actions))

    def unreadable(self, key: bytes, partition: int) -> Sent:
        """A record that stops a journal, an append that cannot be decoded: readers see none of it."""
        self._offsets[partition] += 1
        header = '{"append":{"range":{"from":1,"to":1},"payloadType":"json"}}'
        return Sent(partition, key, b"{", self._now, _action(header))

    def _records(self, actions: int) -> Iterator[Sent]:
        for _ in range(actions):
            key, partition = self._random.choice(self._places)
            self._now += self._random.choice((0, 0, 1, 40))
            (kind,) = self._random.choices(
                (self._append, self._delete, self._purge, self._mark, self._odd), (70, 12, 4, 4, 10)
            )
            sent_key, value, headers = kind(key, partition)
            yield Sent(partition, sent_key, value, self._now, headers)
            self._offsets[partition] += 1

    def _append(self, key: bytes, partition: int) -> tuple[bytes | None, bytes | None, Headers]:
        choose, id_ = self._random.choice, java_text(key)
        highest = self._highest.get(id_, 0)
        first = max(1, highest + choose((1, 1, 1, 1, 1, 1, 0, 4)))
        binary = choose((True, False, False))
        events = [
            Event(number, choose(TAGS), self._payload(binary))
            for number in range(first, first + choose((1, 1, 1, 2, 3, 12)))
        ]
        expire_after = choose((None, None, *EXPIRIES))
        data = choose((None, None, '{"by": "ann"}'))
        bare = choose((False, False, False, True))  # as old producers sent it, without any metadata
        if bare:
            expire_after = data = None
        value = (as_binary if binary else as_json)(events, expire_after, data, bare, self._random)
        origin, version = choose((None, "host-1")), choose((None, "10.1.0"))
        header_data = None if bare else choose((None, None, '{"of": 7.0}'))
        members = [f'"range":{{"from":{first},"to":{events[-1].seq_nr}}}']
        members += [f'"{name}":"{text}"' for name, text in (("origin", origin), ("version", version)) if text]
        members.append(f'"payloadType":"{"binary" if binary else "json"}"')
        if not bare:
            members.append('"metadata":{%s}' % (f'"data":{header_data}' if header_data else ""))
        other = choose(OTHER_HEADERS)
        header = f'{{"append":{{{",".join(members)}}}}}'
        headers = (("journal.action", header.encode()), *other)
        column = _metadata_column(header_data, expire_after, data)
        cells = {"origin": origin, "version": version, "metadata": column, "headers": _texts(other)}
        self._note_append(id_, partition, events, expire_after, cells)
        return key, value, headers

    def _payload(self, binary: bool) -> Payload:
        choose = self._random.choice
        kind = choose((None, "json", "json", "text", *(("binary", "binary") if binary else ())))
        if kind == "json":
            return Payload(kind, *choose(list(JSON.items())))
        sent = choose(TEXTS) if kind == "text" else choose(BYTES) if kind == "binary" else None
        return Payload(kind, sent, sent)

    def _note_append(
        self,
        id_: str,
        partition: int,
        events: Sequence[Event],
        expire_after: str | None,
        common: Mapping[str, Any],
    ) -> None:
        first, last = events[0].seq_nr, events[-1].seq_nr
        entity = self._entities.setdefault(id_, Entity(0, first - 1 or None))
        entity.seq_nr, self._highest[id_] = last, max(last, self._highest.get(id_, 0))
        entity.expire_after = EXPIRIES[expire_after][0] if expire_after else None
        for number, tags, (kind, _, stored) in events:
            if number <= (entity.delete_to or 0):
                continue
            column = "payload_bin" if kind == "binary" else "payload_txt"
            cells = {
                **common,
                "partition": partition,
                "offset": self._offsets[partition],
                "tags": frozenset(tags),
                "payload_type": kind,
                column: stored,
            }
            # What is absent is not written: of a row that comes twice in one millisecond it stays.
            row = entity.rows.setdefault((number, self._now), {})
            row.update({name: value for name, value in cells.items() if value is not None})

    def _delete(self, key: bytes, partition: int) -> tuple[bytes | None, bytes | None, Headers]:
        id_ = java_text(key)
        entity = self._entities.get(id_)
        if entity is None:
            to = self._random.randint(1, 30)
            self._entities[id_] = Entity(to, to)
            self._highest[id_] = to
        else:
            deleted = entity.delete_to or 0
            below = self._random.randint(1, entity.seq_nr)
            to = self._random.choice((below, below, entity.seq_nr, entity.seq_nr + 3, 2**63 - 1))
            entity.delete_to = max(deleted, min(to, entity.seq_nr))
            entity.rows = {at: cells for at, cells in entity.rows.items() if at[0] > entity.delete_to}
        return key, None, _action(f'{{"delete":{{"to":{to},"origin":"host-2"}}}}')

    def _purge(self, key: bytes, partition: int) -> tuple[bytes | None, bytes | None, Headers]:
        self._entities.pop(java_text(key), None)
        self._highest.pop(java_text(key), None)
        return key, None, _action('{"purge":{}}')

    def _mark(self, key: bytes, partition: int) -> tuple[bytes | None, bytes | None, Headers]:
        return key, None, _action('{"mark":{"id":"m","version":"10.1.0"}}')

    def _odd(self, key: bytes, partition: int) -> tuple[bytes | None, bytes | None, Headers]:
        """A record that says nothing to a journal."""
        append = _action('{"append":{"range":{"from":1,"to":1},"payloadType":"json"}}')
        value = b'{"events":[{"seqNr":1,"tags":[]}]}'
        return self._random.choice(
            (
                (None, value, append),
                (None, b"{", _action("{")),
                (key, value, ()),
                (key, value, (("other", b"\xff"),)),
                (key, value, _action('{"new":{}}')),
                (key, value, _action('{"append":1,"purge":"no object"}')),
                (key, None, _action("[]")),
                (key, None, append),
            )
        )


def java_text(key: bytes) -> str:
    """A key as the tables have it; none of ours holds what the two decoders take apart differently."""
    return key.decode("utf-8", "replace")


def as_json(
    events: Sequence[Event], expire_after: str | None, data: str | None, bare: bool, chance: random.Random
) -> bytes:
    """The JSON form of a payload, as one of the two producers writes it."""
    with_nulls = chance.choice((True, False))
    items = []
    for number, tags, (kind, sent, _) in events:
        members = {"seqNr": str(number), "tags": json.dumps(tags)}
        if kind is not None:
            members |= {"payloadType": f'"{kind}"', "payload": sent if kind == "json" else json.dumps(sent)}
        elif with_nulls:
            members |= {"payloadType": "null", "payload": "null"}
        items.append(_object(members))
    document = {"events": f"[{','.join(items)}]"}
    if not bare:
        document["metadata"] = _payload_metadata(expire_after, data, "null" if with_nulls else None)
    return _object(document).encode()


def as_binary(
    events: Sequence[Event], expire_after: str | None, data: str | None, bare: bool, chance: random.Random
) -> bytes:
    """The binary form of a payload; without metadata in one of its old versions."""
    version = chance.choice((0, 7)) if bare else 1
    written = [bytes([version]), struct.pack(">i", len(events))]
    for number, tags, (kind, sent, _) in events:
        body = sent.encode() if isinstance(sent, str) else sent or b""
        block = b"".join(_sized(tag.encode()) for tag in tags)
        code = (None, "binary", "json", "text").index(kind)
        written.append(_sized(struct.pack(">q", number) + _sized(block) + bytes([code]) + _sized(body)))
    if not bare:
        written.append(_payload_metadata(expire_after, data, None).encode())
    return b"".join(written)


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _object(members: Mapping[str, Any]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items() if text is not None) + "}"


def _payload_metadata(expire_after: str | None, data: str | None, absent: str | None) -> str:
    return _object({"expireAfter": expire_after or absent, "data": data or absent})


def _metadata_column(header_data: str | None, expire_after: str | None, data: str | None) -> str:
    stored = f'"{EXPIRIES[expire_after][1]}"' if expire_after else None
    compact = {None: None, '{"by": "ann"}': '{"by":"ann"}', '{"of": 7.0}': '{"of":7}'}
    payload = _object({"expireAfter": stored, "data": compact[data]})
    return f'{{"header":{_object({"data": compact[header_data]})},"payload":{payload}}}'


def _texts(headers: Headers) -> dict[str, str]:
    return {name: value.decode() for name, value in headers if name != "journal.action"}


def _action(header: str) -> Headers:
    return (("journal.action", header.encode()),)
