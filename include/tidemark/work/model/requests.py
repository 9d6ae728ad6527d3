"""Repeated requests for one key become one: the rule, field by field.

Apart from the insertion date, which is that of the first to arrive, the order in which packets arrive and how
often they do makes no difference. A packet that is older than one already in the entry brings its dates and
its priority, never its payload.
"""

from dataclasses import replace

from tidemark.work.model.entry import Entry, Packet, Request
from tidemark.work.model.rules import OnMerge, Rules, ceiling, larger_expiry


def request_of(packet: Packet, rules: Rules) -> Request:
    """One packet alone. It is never to be processed before it was inserted."""
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
    """Two requests for the same key as one."""
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
    """A waiting entry and a further request; a newer payload starts all counters but the total again."""
    together = replace(entry, request=merged(entry.request, request, rules))
    if _age(together.request) == _age(entry.request):
        return together
    return replace(together, timeouts=0, failures=0, error=None)


def _age(request: Request) -> tuple[int, str, int]:
    # Two packets of the same millisecond: any of them, but the same whoever comes first.
    return (request.newest, request.payload, request.schema)
