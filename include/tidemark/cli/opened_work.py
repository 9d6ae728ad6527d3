"""What the commands about work journals share: a journal opened, what was typed understood, answers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from tidemark.cli.options import print_json

if TYPE_CHECKING:
    from tidemark.work.claimed_item import Ticket
    from tidemark.work.client import Work
    from tidemark.work.model.entry_view import WorkEntry


@contextmanager
def opened(journal: str) -> "Iterator[Work]":
    """A declared journal, with the connections that the environment has for it."""
    from tidemark.cli.connections import look_up
    from tidemark.work.client import Work

    with Work.of_file(journal, look_up=look_up) as work:
        yield work


def typed_key(work: "Work", text: str) -> Any:
    """A key as it was typed: the text of one text column, else JSON."""
    from tidemark.work.model.columns import ColumnType

    if list(work.declared.key.values()) == [ColumnType.TEXT]:
        return text
    return parsed_json(text, "KEY")


def ticket(work: "Work", key: str, token: str) -> "Ticket":
    """A claim by what was typed."""
    from tidemark.work.claimed_item import Ticket

    return Ticket(typed_key(work, key), token)


def parsed_json(text: str, name: str) -> Any:
    """JSON that was typed."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint=name) from None


def parsed_duration(text: str | None, name: str) -> timedelta | None:
    """A length of time that was typed."""
    from tidemark.pipeline.quantities import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None


def say_ended(as_json: bool, journal: str, key: str, outcome: str) -> None:
    """Say how a claim ended."""
    answer(as_json, {"journal": journal, "key": key, "outcome": outcome}, f"{journal}/{key}: {outcome}.")


def answer(as_json: bool, fields: dict[str, Any], line: str) -> None:
    """JSON for programs, a line for people."""
    if as_json:
        print_json(fields)
    else:
        typer.echo(line)


def say_planned(as_json: bool, plan: dict[str, Any], lines: list[str], who: str | None) -> None:
    """Show a plan, and whether it was carried out."""
    if as_json:
        print_json(plan)
        return
    for line in lines:
        typer.echo(line)
    typer.echo(f"Done by {who}." if who else 'Nothing was changed. Add --execute --reason "…" to do it.')


def say_nothing(as_json: bool, plan: dict[str, Any], line: str) -> NoReturn:
    """Say that there is nothing of what was meant, and end with exit code 1."""
    if as_json:
        print_json(plan)
    typer.echo(line, err=True)
    raise typer.Exit(1)


def letter_lines(letters: "Sequence[WorkEntry]") -> list[str]:
    """Dead letters as lines of a plan."""
    return [f"  {_key(one.key)}: {one.reason} ({one.error or 'no error text'})" for one in letters]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)


def print_table(table: Any) -> None:
    """A table for people."""
    from rich.console import Console

    Console().print(table)
