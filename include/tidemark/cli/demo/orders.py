"""The orders of an event-sourced shop, which the demo sends to Kafka.

Deterministic: the same batch number gives the same actions. Nothing here sends anything.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tidemark.journal.action import Action, Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import read_expire_after
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata

ORIGIN, VERSION = "shop-1", "demo"
_STEPS = ("OrderPlaced", "ItemAdded", "PaymentReceived", "Packed", "Shipped", "Delivered")
_GOODS = ("tea", "lamp", "notebook", "bicycle bell", "umbrella", "compass")


@dataclass
class _Order:
    key: str
    last: int = 0
    expires: str | None = None
    tags: tuple[str, ...] = field(default=("order",))


def sample_actions(count: int, batch: int, now: int) -> Iterator[Action]:
    """``count`` actions of new orders; ``batch`` makes the keys of two calls differ, ``now`` is in ms."""
    random = Random(batch)
    orders = [_Order(f"order-{batch:03d}-{number:04d}") for number in range(max(count // 8, 4))]
    orders[0].expires = "1 day"
    for order in orders[1 :: len(orders) // 4]:
        order.expires = "30 days"
    for number in range(count):
        at = now - (count - number)
        order = random.choice(orders)
        chance = random.random()
        if order.last >= 3 and chance < 0.04:
            yield Delete(order.key, at, to=random.randint(1, order.last), origin=ORIGIN, version=VERSION)
        elif chance < 0.06:
            yield Mark(order.key, at, id=f"mark-{batch}-{number}", origin=ORIGIN, version=VERSION)
        elif order.last >= 5 and chance < 0.065:
            order.last = 0
            yield Purge(order.key, at, origin=ORIGIN, version=VERSION)
        else:
            yield _append(order, random, at)


def expired_order(batch: int, now: int) -> Action:
    """An order that expired yesterday, so that the demo need not wait for the end of a day."""
    order = _Order(f"order-{batch:03d}-expired", expires="-1 day")
    return _append(order, Random(batch), now)


def _append(order: _Order, random: Random, at: int) -> Action:
    size = random.choice((1, 1, 1, 2, 3))
    events = tuple(_event(order, order.last + 1 + offset, random) for offset in range(size))
    order.last += size
    after = None if order.expires is None else read_expire_after(order.expires)
    return append(
        order.key,
        at,
        Events(events, PayloadMetadata(expire_after=after)),
        origin=ORIGIN,
        version=VERSION,
        headers={"trace": f"{random.getrandbits(64):016x}"} if random.random() < 0.1 else None,
    )


def _event(order: _Order, seq_nr: int, random: Random) -> EncodedEvent:
    chance = random.random()
    if chance < 0.05:
        return EncodedEvent(seq_nr, order.tags, "text", f"note: {random.choice(_GOODS)} is a gift")
    if chance < 0.1:
        return EncodedEvent(seq_nr, order.tags, "binary", random.randbytes(48))
    body = {
        "type": _STEPS[min(seq_nr - 1, len(_STEPS) - 1)],
        "order": order.key,
        "item": random.choice(_GOODS),
        "quantity": random.randint(1, 5),
        "price": str(random.randint(100, 99_999) / 100),
    }
    return EncodedEvent(seq_nr, order.tags, "json", json.dumps(body, separators=(",", ":")))
