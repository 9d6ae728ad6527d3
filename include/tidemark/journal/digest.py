"""Digests of ``journal`` rows, column by column: small enough to hold millions, and comparable.

Two rows have the same digest where a reader cannot tell their columns apart. JSON is compared by value, tags
as a set, headers as a map, ``expireAfter`` by its length (earlier versions wrote ``1 day`` for ``24 hours``);
an empty collection equals a null. ``meta_record_id`` is left out: it ties a row to an incarnation, and its
value has no other meaning.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from struct import Struct

from tidemark.journal.codec.expire_after import read_expire_after
from tidemark.journal.codec.json_text import canonical, ordered, parse
from tidemark.journal.effect import Row
from tidemark.journal.errors import Undecodable

COLUMNS = (
    *("partition", "offset", "origin", "version", "tags", "metadata", "payload_type"),
    *("payload_txt", "payload_bin", "headers"),
)
"""The columns in a digest, in the order of the parameters of ``row_digest``."""
_UNSET = frozenset({"origin", "version", "payload_type", "payload_txt", "payload_bin"})
"""Columns that are not written where a row has no value for them, so that an older value remains."""
NOWHERE = -1
"""The partition and the offset of a row without them."""
_columns_of = attrgetter(*COLUMNS)
_NULL = bytes(8)
_SHORT = 100
_pack = Struct(">iq").pack
_unpack = Struct(">iq").unpack_from
_split = Struct("4s8s" + 8 * "8s").unpack
_UNREAD = b"\1" * 8
"""The digest of a ``payload_txt`` that no reader uses: it equals everything."""


def row_digest(
    partition: int | None,
    offset: int | None,
    origin: str | None,
    version: str | None,
    tags: Collection[str] | None,
    metadata: str | None,
    payload_type: str | None,
    payload_txt: str | None,
    payload_bin: bytes | None,
    headers: Mapping[str, str] | None,
) -> bytes:
    """The digest of a row's columns.

    It contains the partition and the offset in the clear (``source_of``).
    """
    return b"".join(
        (
            _pack(NOWHERE if partition is None else partition, NOWHERE if offset is None else offset),
            _NULL if origin is None else _known_text(origin),
            _NULL if version is None else _known_text(version),
            _text(repr(sorted(tags))) if tags else _NULL,
            _NULL if metadata is None else _metadata(metadata),
            _NULL if payload_type is None else _known_text(payload_type),
            _NULL if payload_txt is None else (_json if payload_type == "json" else _text)(payload_txt),
            _NULL if payload_bin is None else _bytes(payload_bin),
            _text(repr(sorted(headers.items()))) if headers else _NULL,
        )
    )


def digest_of(row: Row) -> bytes:
    """The digest of a row from the fold."""
    return row_digest(*_columns_of(row))


def source_of(digest: bytes) -> tuple[int, int]:
    """The partition and the offset columns of a row; ``NOWHERE`` for a null."""
    partition, offset = _unpack(digest)
    return partition, offset


def changed_columns(one: bytes, other: bytes) -> tuple[str, ...]:
    """The names of the columns in which two rows differ."""
    if one == other:
        return ()
    columns = zip(COLUMNS, _split(one), _split(other), strict=True)
    return tuple(name for name, a, b in columns if a != b and _UNREAD not in (a, b))


def overwritten(old: bytes, new: bytes) -> bytes:
    """The digest of the stored row after ``new`` was written over ``old`` at the same place."""
    before, after = (dict(zip(COLUMNS, _split(digest), strict=True)) for digest in (old, new))
    kept = {name: after[name] if after[name] != _NULL else before[name] for name in _UNSET}
    if after["payload_txt"] == _NULL != before["payload_txt"]:
        # Readers interpret the remaining text by ``payload_type``, which the new row may have changed.
        is_other = kept["payload_type"] != before["payload_type"]
        kept["payload_txt"] = _UNREAD if is_other else before["payload_txt"]
    return b"".join((after | kept).values())


def _bytes(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()


def _text(text: str) -> bytes:
    return _bytes(text.encode("utf-8", "surrogatepass"))


def _json(text: str) -> bytes:
    try:
        return _bytes(ordered(text.encode()))
    except Undecodable:  # written by another program; made different from every JSON document
        return _bytes(b"\0" + text.encode())


def _metadata(text: str) -> bytes:
    return (_known_metadata if len(text) < _SHORT else _any_metadata)(text)


def _any_metadata(text: str) -> bytes:
    if '"expireAfter"' not in text:
        return _json(text)
    try:
        value = parse(text.encode())
        payload = value.get("payload") if isinstance(value, dict) else None
        if isinstance(payload, dict) and isinstance(written := payload.get("expireAfter"), str):
            payload["expireAfter"] = f"{read_expire_after(written).nanos} ns"
        return _json(canonical(value))
    except Undecodable:  # written by another program; compared as it is
        return _json(text)


# Texts that repeat are short, so only those are worth a cache.
_known_text = lru_cache(maxsize=4096)(_text)
_known_metadata = lru_cache(maxsize=4096)(_any_metadata)
