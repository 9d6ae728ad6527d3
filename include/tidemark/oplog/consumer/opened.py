"""A consumer's parts, opened from its arguments: what the blocking and the asyncio consumer share."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random

import httpx

from tidemark.oplog.consumer.backoff import Backoff
from tidemark.oplog.consumer.connection import timeouts
from tidemark.oplog.consumer.errors import BadOpLogOption
from tidemark.oplog.consumer.following import EVERYTHING, Following, FollowingRules
from tidemark.oplog.consumer.in_flight import InFlight, Position
from tidemark.oplog.consumer.position_keeper import PositionKeeper
from tidemark.oplog.consumer.request import StreamAddress
from tidemark.oplog.consumer.state_file import StateFile

STALLED_AFTER = 300.0
"""Seconds without progress while as many items as allowed are in flight, before it is an error."""


@dataclass(frozen=True, slots=True)
class OpenedConsumer:
    """The parts of a consumer.

    Attributes:
        following: Its view of the stream.
        in_flight: What was handed out.
        keeper: Saves its position.
        timeout: The timeouts of its connections.
    """

    following: Following
    in_flight: InFlight
    keeper: PositionKeeper
    timeout: httpx.Timeout


def open_consumer(
    url: str,
    *,
    state_file: str | os.PathLike[str] | None,
    types: str | Iterable[str] | None,
    parents: str | Iterable[str] | None,
    token: str | None,
    since: datetime | int | None,
    last_event_id: str | None,
    allow_replication: bool,
    max_in_flight: int,
    silence: float,
    attempts: int | None,
) -> OpenedConsumer:
    """Checks the arguments, locks and reads the state file; connects to nothing.

    Raises:
        BadOpLogOption: An argument is not valid.
        StateFileInUse: Another consumer uses the state file.
        StateFileEmpty: The state file has no content.
        StateFileDamaged: It has something else than a position.
        StateFileUnusable: It cannot be opened.
    """
    if max_in_flight < 1:
        raise BadOpLogOption("max_in_flight", "is less than 1")
    if silence <= 0:
        raise BadOpLogOption("silence", "is not a number of seconds above 0")
    if attempts is not None and attempts < 1:
        raise BadOpLogOption("attempts", "is less than 1")
    if last_event_id is not None and not (last_event_id.isascii() and last_event_id.isprintable()):
        raise BadOpLogOption("last_event_id", "has characters that no header can have")
    if last_event_id is not None and (state_file is not None or since is not None or not last_event_id):
        raise BadOpLogOption("last_event_id", "is empty, or given together with `state_file` or `since`")
    address = StreamAddress.of(url, types, parents, since, token)
    file = None if state_file is None else StateFile.open(state_file)
    try:
        saved = None if file is None else file.load()
    except BaseException:
        if file is not None:
            file.close()
        raise
    first = EVERYTHING if file is not None and since is None and allow_replication else last_event_id
    start = saved or Position(first)
    in_flight = InFlight(start, max_in_flight)
    rules = FollowingRules(allow_replication, attempts)
    following = Following(address, rules, start, in_flight, Backoff(Random()))
    return OpenedConsumer(following, in_flight, PositionKeeper(in_flight, file, saved), timeouts(silence))
