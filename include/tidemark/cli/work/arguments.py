"""A work journal opened by name, and what commands about it are given: keys, JSON, lengths of time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tidemark.work.claimed_item import Ticket
    from tidemark.work.client import Work


@contextmanager
def open_journal(journal: str) -> "Iterator[Work]":
    """A declared journal with the connections that the environment has for it; closed at the end."""
    from tidemark.cli.connections import look_up
    from tidemark.work.client import Work

    with Work.of_file(journal, look_up=look_up) as work:
        yield work


def parse_key(work: "Work", text: str) -> Any:
    """A key: the text itself where the key is one text column, else JSON."""
    from tidemark.work.model.columns import ColumnType

    if list(work.declared.key.values()) == [ColumnType.TEXT]:
        return text
    return parse_json(text, "KEY")


def claim_ticket(work: "Work", key: str, token: str) -> "Ticket":
    """The claim of a key with the token that ``claim`` printed."""
    from tidemark.work.claimed_item import Ticket

    return Ticket(parse_key(work, key), token)


def parse_json(text: str, name: str) -> Any:
    """A JSON argument; ``name`` is the parameter in the error (exit code 2)."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint=name) from None
