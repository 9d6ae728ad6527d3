"""Errors of consumers.

An error ends an iteration, not the consumer: where a retry makes sense, iterating again continues at the same
place. Connections that break are no errors; they are made again.
"""

from tidemark.errors import TidemarkError, with_fields


class OpLogConsumerError(TidemarkError):
    """The root of errors about following an agent's stream."""


@with_fields
class BadOpLogOption(OpLogConsumerError, ValueError):
    """An argument of a consumer is not valid."""

    needs_person = True

    option: str
    problem: str

    text = "`{option}` {problem}. Nothing was connected and no file was touched."


@with_fields
class StreamDenied(OpLogConsumerError):
    """The agent does not accept the token."""

    needs_person = True

    url: str
    status: int
    reason: str

    text = (
        "{url} answered {status}: the token is missing, has expired, or does not allow these types and "
        "parents ({reason}). No operation is lost: start again with a valid token."
    )


@with_fields
class StreamRefused(OpLogConsumerError):
    """The agent, or what answers in its place, refuses the request in a way that a retry cannot change."""

    needs_person = True

    url: str
    status: int
    reason: str

    text = (
        "{url} answered {status} instead of a stream: {reason}. No operation was handed out from it, and the "
        "position is unchanged. Check the address, the filters and the state file."
    )


@with_fields
class StreamBroken(OpLogConsumerError):
    """Several connections in a row delivered something that is not a stream of operations."""

    needs_person = True

    url: str
    reason: str
    times: int

    text = (
        "{url} sent what cannot be understood, {times} times in a row: {reason}. Nothing of it was handed "
        "out, and the position is before it. Check what answers there, and its version."
    )


@with_fields
class AgentUnreachable(OpLogConsumerError):
    """As many attempts to connect as allowed have failed in a row."""

    url: str
    attempts: int
    reason: str

    text = (
        "{url} gave no stream in {attempts} attempts; the last one: {reason}. The position is unchanged. "
        "Start the agent, or try again later."
    )


@with_fields
class ReplicationNeeded(OpLogConsumerError):
    """The agent cannot continue at the position, and the consumer does not allow a full replication."""

    needs_person = True

    url: str
    position: str

    text = (
        "{url} can no longer continue at position {position}: operations after it can only be made up for by "
        "a full replication, which `allow_replication=False` excludes. Nothing was handed out, and the "
        "position is unchanged. Allow it; or remove the state file to go on from now without what is missing."
    )


@with_fields
class NothingDone(OpLogConsumerError):
    """As many items as allowed are in flight, and for a long time the oldest was not reported as done."""

    in_flight: int
    seconds: float

    text = (
        "{in_flight} items are in flight, and for {seconds:.0f} s the oldest was not passed to `done`. No "
        "further one was handed out, and the position is before the oldest. Call `done` for every item, for "
        "`reset` and `live` as well; or raise `max_in_flight`."
    )


@with_fields
class StateFileEmpty(OpLogConsumerError):
    """The state file has no content: it does not say where to continue."""

    needs_person = True

    path: str

    text = (
        "{path} is empty: it does not say where to continue, and to begin now could leave a gap. Nothing was "
        "connected. Restore it from a backup; or remove it, and the consumer starts as for the first time."
    )


@with_fields
class StateFileDamaged(OpLogConsumerError):
    """The state file has something else than a position."""

    needs_person = True

    path: str
    problem: str

    text = (
        "{path} is not a state file: {problem}. Nothing was connected. Restore it from a backup; or remove "
        "it, and the consumer starts as for the first time."
    )


@with_fields
class StateFileInUse(OpLogConsumerError):
    """Another consumer uses the state file."""

    path: str

    text = (
        "{path} is in use by another consumer, of this process or another one. Nothing was connected. Give "
        "each consumer a state file of its own, or close the other one."
    )


@with_fields
class StateFileUnusable(OpLogConsumerError):
    """The state file or its lock file cannot be opened."""

    needs_person = True

    path: str
    problem: str

    text = "{path} cannot be used as a state file: {problem}. Nothing was connected."


@with_fields
class PositionNotSaved(OpLogConsumerError):
    """The position could not be made durable."""

    path: str
    problem: str

    text = (
        "The position could not be saved in {path}: {problem}. The file has the position before; what was "
        "done since would be handed out again after a restart. Make room or access, then iterate again."
    )


class StreamGarbled(OpLogConsumerError):
    """A stream is not what it should be; the text says how. The consumer connects again, and raises
    ``StreamBroken`` where that does not help.
    """
