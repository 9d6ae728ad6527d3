"""``tidemark oplog send``: operations from the command line or from lines of JSON to an agent.

Exit code 0: every operation was acknowledged (by UDP: was sent). 1: one was refused; those before it were
acknowledged. 2: the command line is not valid. 3: not acknowledged; send again from the line that is named.
"""

import json
import sys
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import urlsplit

import typer

from tidemark.cli.oplog.arguments import Target, TokenFile, agent_url, read_token
from tidemark.cli.options import Json, print_json

NOT_ACKNOWLEDGED = 3


def send(
    agent: Target,
    event: Annotated[
        str | None, typer.Argument(help="insert, update or delete; without it, lines of JSON from stdin.")
    ] = None,
    type_: Annotated[str | None, typer.Argument(metavar="TYPE", help="The kind of object.")] = None,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="The object's id.")] = None,
    parent: Annotated[list[str] | None, typer.Option(help="An object above it; may be repeated.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="When, by RFC 3339; by default now.")] = None,
    udp: Annotated[bool, typer.Option("--udp", help="By UDP: without an acknowledgement.")] = False,
    token_file: TokenFile = None,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts to send a request.")] = 5,
    as_json: Json = False,
) -> None:
    """Send operations to an agent: one from the arguments, or many as lines of JSON from stdin."""
    lines: Iterable[bytes]
    if event is None:
        lines = sys.stdin.buffer
    elif type_ is None or id_ is None:
        raise typer.BadParameter("an operation needs EVENT, TYPE and ID.")
    else:
        lines = [_operation(event, type_, id_, parent or [], timestamp)]
    url = agent_url(agent)
    if udp or url.startswith("udp://"):
        count = _send_udp(url, lines)
    else:
        count = _send_http(url, lines, read_token(token_file), attempts)
    said = "sent" if udp or url.startswith("udp://") else "acknowledged"
    if as_json:
        print_json({said: count})
    else:
        typer.echo(f"{count} operation{'' if count == 1 else 's'} {said}.")


def _operation(event: str, type_: str, id_: str, parents: list[str], timestamp: str | None) -> bytes:
    said = {"event": event, "parents": parents, "type": type_, "id": id_}
    return json.dumps(said if timestamp is None else {**said, "timestamp": timestamp}).encode()


def _send_http(url: str, lines: Iterable[bytes], token: str | None, attempts: int) -> int:
    from tidemark.oplog.producer.errors import OperationsNotAcknowledged
    from tidemark.oplog.producer.http_sender import HttpSender
    from tidemark.oplog.producer.lines import read_lines, requests_of

    with HttpSender(url, token=token, attempts=attempts) as sender:
        try:
            for request in requests_of(read_lines(lines)):
                sender.send(request)
        except OperationsNotAcknowledged as error:
            print(error, file=sys.stderr)
            raise typer.Exit(NOT_ACKNOWLEDGED) from None
        return sender.acknowledged


def _send_udp(url: str, lines: Iterable[bytes]) -> int:
    from tidemark.oplog.producer.errors import BadAgentAddress
    from tidemark.oplog.producer.lines import read_lines
    from tidemark.oplog.producer.udp_sender import UdpSender

    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadAgentAddress(url) from None
    if not host or not port:
        raise BadAgentAddress(url)
    with UdpSender(host, port) as sender:
        for line in read_lines(lines):
            sender.send(line)
        return sender.sent
