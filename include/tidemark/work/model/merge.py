"""The effect of a packet on the entry of its key. Pure."""

from dataclasses import replace

from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.entry import Entry, Packet, Status
from tidemark.work.model.lapse import notice
from tidemark.work.model.requests import joined, merged, request_of
from tidemark.work.model.rules import Rules, is_expired, is_never_due


def merge(old: Entry | None, packet: Packet, now: int, rules: Rules) -> Decision:
    """The entry of the key after this packet.

    Without a live entry, the packet becomes one. A waiting entry is merged with it. Behind an entry that is
    being processed, the packet is queued as the successor, merged with one that is queued already. Expiry and
    lapsed claims are applied first. A packet that would expire before it may be processed is not stored: the
    outcome is ``EXPIRED``, and the entry stays as it is.
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
