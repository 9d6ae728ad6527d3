"""``tidemark oplog tail``: an agent's stream on stdout, one line an operation.

With a state file, the position moves once a line is written: a restart continues with the next one.
"""

import json
import signal
import sys
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.oplog.arguments import Target, TokenFile, agent_url, read_token

if TYPE_CHECKING:
    from tidemark.oplog.consumer.items import OpLogItem


def tail(
    agent: Target,
    types: Annotated[str | None, typer.Option(help="Only these types, with commas.")] = None,
    parents: Annotated[str | None, typer.Option(help="Only below these parents, with commas.")] = None,
    since: Annotated[
        str | None, typer.Option(help="First what has changed since then: RFC 3339, or ms since 1970.")
    ] = None,
    replicate: Annotated[
        bool, typer.Option("--replicate", help="First every object there is, then live.")
    ] = False,
    state_file: Annotated[
        Path | None, typer.Option(help="Keeps the position; without the file, every object comes first.")
    ] = None,
    allow_replication: Annotated[
        bool, typer.Option(help="Whether every object may be sent where the position is too old.")
    ] = True,
    until_live: Annotated[
        bool, typer.Option("--until-live", help="End when the stream has caught up after a replication.")
    ] = False,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many operations.")] = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="Give up after so many attempts to connect; by default never.")
    ] = None,
    token_file: TokenFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print lines of JSON instead of text.")] = False,
) -> None:
    """Follow the stream of an agent; continues by itself when a connection breaks."""
    from tidemark.oplog.consumer.items import OpLogLive, OpLogOperation
    from tidemark.oplog.consumer.oplog import OpLog

    if replicate and (state_file is not None or since is not None):
        raise typer.BadParameter("--replicate goes with neither --state-file nor --since.")
    oplog = OpLog(
        agent_url(agent),
        state_file=state_file,
        types=types,
        parents=parents,
        token=read_token(token_file),
        since=None if since is None else _milliseconds(since),
        last_event_id="0" if replicate else None,
        allow_replication=allow_replication,
        attempts=attempts,
    )
    seen = 0
    signal.signal(signal.SIGTERM, _terminated)
    with oplog:
        for item in oplog:
            sys.stdout.write(_json(item) if as_json else _line(item))
            sys.stdout.flush()  # it may be the last one for hours, and only what is written is done
            oplog.done(item)
            seen += isinstance(item, OpLogOperation)
            if seen == count or (until_live and isinstance(item, OpLogLive)):
                return


def _terminated(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _milliseconds(since: str) -> int:
    from tidemark.operations.errors import BadOperation
    from tidemark.operations.times import milliseconds

    if since.isascii() and since.isdecimal():
        return int(since)
    try:
        return milliseconds(since)
    except BadOperation:
        raise typer.BadParameter("--since is neither a time by RFC 3339 nor in ms since 1970.") from None


def _json(item: "OpLogItem") -> str:
    from tidemark.oplog.consumer.items import OpLogOperation

    said: dict[str, Any] = {"event": item.event, "event_id": item.event_id}
    if isinstance(item, OpLogOperation):
        said |= {
            "timestamp": _time(item.timestamp),
            "parents": item.parents,
            "type": item.type,
            "id": item.id,
        }
        if item.ref is not None:
            said["ref"] = item.ref
    return json.dumps(said, ensure_ascii=False) + "\n"


def _line(item: "OpLogItem") -> str:
    from tidemark.oplog.consumer.items import OpLogOperation

    if not isinstance(item, OpLogOperation):
        return f"# {item.event}\n"
    parents = f"  [{', '.join(item.parents)}]" if item.parents else ""
    shown = "".join(letter if letter.isprintable() else "·" for letter in item.key + parents)
    return f"{_time(item.timestamp)}  {item.event:<6}  {shown}\n"


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
