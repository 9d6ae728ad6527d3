"""Literal entries and times of the worked examples: one day, hours and minutes as the tables write them."""

from dataclasses import replace
from typing import Any

from tidemark.work.model.entry import Entry, Packet, Request, Status
from tidemark.work.model.rules import Rules

DAY = 1_794_873_600_000  # 2026-11-17T00:00:00Z
HOUR_LIMIT = Rules(time_limit=3_600_000, max_timeouts=5)


def at(clock: str) -> int:
    """``10:00:05.500`` as milliseconds; ``0`` is never."""
    if clock == "0":
        return 0
    hours, minutes, *rest = clock.split(":")
    seconds = float(rest[0]) if rest else 0.0
    return DAY + (int(hours) * 60 + int(minutes)) * 60_000 + round(seconds * 1000)


def given_packet(
    inserted: str, expires: str, priority: int, process: str, payload: str, key: str = "page/42"
) -> Packet:
    return Packet(key, at(inserted), at(process), payload, priority, at(expires))


E0 = Entry(
    "page/42",
    Status.WAITING,
    Request(at("10:00:00"), at("10:00:00"), at("12:00:00"), 180, at("10:00:10"), "rev7", 1),
    timeouts=2,
)


def given_running(start: str = "10:00:10", token: str = "a", owner: str = "w1", **changes: Any) -> Entry:
    running = replace(E0, status=Status.PROCESSING, start=at(start), token=token, owner=owner)
    return replace(running, **{"claimed": at(start), **changes})


def with_request(entry: Entry, **changes: Any) -> Entry:
    return replace(entry, request=replace(entry.request, **changes))
