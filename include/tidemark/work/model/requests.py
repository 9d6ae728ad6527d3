"""How repeated requests for one key are merged, field by field. Pure.

Apart from the insertion time, which is that of the first packet to arrive, merging is commutative and
idempotent. A packet older than the entry's newest one contributes its times and priority, never its payload.
"""

from dataclasses import replace

from tidemark.work.model.entry import Entry, Packet, Request
from tidemark.work.model.rules import OnMerge, Rules, ceiling, larger_expiry


def request_of(packet: Packet, rules: Rules) -> Request:
    """The request of one packet. Its process time is never before its insertion."""
    return Request(
        inserted=packet.inserted,
        newest=packet.inserted,
        expires=packet.expires,
        priority=packet.priority,
        process=ceiling(packet.inserted, max(packet.process, packet.inserted), rules),
        payload=packet.payload,
        schema=packet.schema,
    )


def merged(old: Request, new: Request, rules: Rules) -> Request:
    """Two requests for the same key, merged."""
    newest = max(old, new, key=_age)
    process = old.process
    if rules.on_merge is OnMerge.LARGEST:
        process = max(process, ceiling(old.inserted, new.process, rules))
    return Request(
        inserted=old.inserted,
        newest=newest.newest,
        expires=larger_expiry(old.expires, new.expires),
        priority=min(old.priority, new.priority),
        process=process,
        payload=newest.payload,
        schema=newest.schema,
    )


def joined(entry: Entry, request: Request, rules: Rules) -> Entry:
    """A waiting entry merged with a request; a newer payload resets all counters but the total."""
    together = replace(entry, request=merged(entry.request, request, rules))
    if _age(together.request) == _age(entry.request):
        return together
    return replace(together, timeouts=0, failures=0, error=None)


def _age(request: Request) -> tuple[int, str, int]:
    # For packets of the same millisecond the choice must not depend on the order of arrival.
    return (request.newest, request.payload, request.schema)
