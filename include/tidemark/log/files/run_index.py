"""Keys of run ids in sorted blocks: whether a run has made one of many bindings, without reading them.

A key is the first eight bytes of a digest. Keys are spread evenly, so the block that would have a key is
found with one or two reads, however many keys there are. Every block has a checksum: a damaged block is an
error, because a run that is not found would bind a second time. A key that is found may still belong to
another run: the caller compares the run ids.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from zlib import crc32

import numpy as np

KEYS_PER_BLOCK = 511
KEY_BYTES = 8
BLOCK_BYTES = (KEYS_PER_BLOCK + 1) * KEY_BYTES
_KEYS = np.dtype(">u8")
_ALL_KEYS = 1 << 64


class BlockDamaged(ValueError):
    """A block's checksum differs from its content."""


def run_key(run_id: str) -> int:
    """The key of a run id."""
    return int.from_bytes(sha256(run_id.encode()).digest()[:KEY_BYTES], "big")


def encode(keys: Iterable[int]) -> bytes:
    """The sorted keys in blocks; the last block is as short as its keys."""
    ordered = np.sort(np.fromiter(keys, np.uint64)).astype(_KEYS)
    blocks = (ordered[first : first + KEYS_PER_BLOCK] for first in range(0, len(ordered), KEYS_PER_BLOCK))
    return b"".join(_checksum(body) + body for body in (block.tobytes() for block in blocks))


def decode(data: bytes) -> list[int]:
    """All keys; raises ``BlockDamaged``."""
    blocks = (data[first : first + BLOCK_BYTES] for first in range(0, len(data), BLOCK_BYTES))
    return [int(key) for block in blocks for key in _keys_of(block)]


def size_of(count: int) -> int:
    """The size of an index with so many keys."""
    return (count + -(-count // KEYS_PER_BLOCK)) * KEY_BYTES


def has_key(key: int, count: int, read_at: Callable[[int, int], bytes]) -> bool:
    """Whether an index of ``count`` keys has a key; ``read_at(offset, length)`` reads its bytes.

    Raises ``BlockDamaged``.
    """
    blocks = -(-count // KEYS_PER_BLOCK)
    low, high = 0, blocks - 1
    guess = key * blocks // _ALL_KEYS
    while low <= high:
        number = min(max(guess, low), high)
        length = min(BLOCK_BYTES, size_of(count) - number * BLOCK_BYTES)
        keys = _keys_of(read_at(number * BLOCK_BYTES, length))
        if key < int(keys[0]):
            high = number - 1
            guess = number - 1
        elif key > int(keys[-1]):
            low = number + 1
            guess = number + 1
        else:
            return bool(keys[np.searchsorted(keys, np.uint64(key))] == np.uint64(key))
    return False


def _checksum(body: bytes) -> bytes:
    return crc32(body).to_bytes(KEY_BYTES, "big")


def _keys_of(block: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    body = block[KEY_BYTES:]
    if not body or len(body) % KEY_BYTES or _checksum(body) != block[:KEY_BYTES]:
        raise BlockDamaged(f"a block of {len(block)} bytes has another checksum than its content")
    return np.frombuffer(body, _KEYS).astype(np.uint64)
