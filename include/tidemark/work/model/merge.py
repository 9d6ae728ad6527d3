"""What a packet does to what the journal has for its key."""

from dataclasses import replace

from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.entry import Entry, Packet, Status
from tidemark.work.model.lapse import notice
from tidemark.work.model.requests import joined, merged, request_of
from tidemark.work.model.rules import Rules, is_expired, is_never_due


def merge(old: Entry | None, packet: Packet, now: int, rules: Rules) -> Decision:
    """What the journal has for the key after this packet.

    Nothing live: an entry of its own. Waiting: one entry, merged. Being processed: that one is left alone,
    and the packet waits, merged with others of its kind, as its successor. A claim that has lapsed is
    noticed first, as by any other process that sees it. What would expire before it may be processed is not
    stored: the outcome is ``EXPIRED``, and what was there stays.
    """
    noticed = notice(old, now, rules)
    entry, request = noticed.entry, request_of(packet, rules)
    if entry is None:
        if is_expired(request, now) or is_never_due(request):
            return replace(noticed, outcome=Outcome.EXPIRED)
        return replace(noticed, entry=Entry(packet.key, Status.WAITING, request), outcome=Outcome.INSERTED)
    if entry.is_waiting:
        after, outcome = joined(entry, request, rules), Outcome.MERGED
        if is_never_due(after.request):
            return replace(noticed, outcome=Outcome.EXPIRED)
    else:
        successor = request if entry.successor is None else merged(entry.successor, request, rules)
        if is_expired(successor, now) or is_never_due(successor):
            return replace(noticed, outcome=Outcome.EXPIRED)
        after, outcome = replace(entry, successor=successor), Outcome.QUEUED
    return replace(noticed, entry=after, outcome=Outcome.UNCHANGED if after == old else outcome)
