"""``tidemark work``: journals of work to be done, by hand: ask for work, claim it, say what became of it.

What cannot be taken back (cancel, redrive, seen) shows its plan first, and is done with ``--execute
--reason``.
"""

import getpass
import json
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from tidemark.cli.opened_pipeline import demand_reason
from tidemark.cli.opened_work import (
    answer,
    letter_lines,
    opened,
    parsed_duration,
    parsed_json,
    print_table,
    say_ended,
    say_nothing,
    say_planned,
    ticket,
    typed_key,
)
from tidemark.cli.options import By, Execute, Json, Reason, print_json

app = typer.Typer(help="Work journals.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="JOURNAL", help="Name of the work journal.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key: its text, or JSON for several columns.")]
Token = Annotated[str, typer.Argument(metavar="TOKEN", help="What the claim gave.")]
Limit = Annotated[int, typer.Option(min=1, help="How many at most.")]


@app.command()
def create(journal: Name, as_json: Json = False) -> None:
    """Make a journal that a file in include/work declares; or give it the changed declaration."""
    from tidemark.cli.connections import look_up
    from tidemark.connections import CassandraConnection
    from tidemark.work.client import Work
    from tidemark.work.loader import find_journal

    declared = find_journal(journal)
    cassandra = CassandraConnection.from_airflow(declared.connection, look_up(declared.connection))
    work, made = Work.create(declared, cassandra=cassandra)
    warning = work.copies_warning()
    said = "is as declared now" if made else "was as declared already; nothing was changed"
    fields = {"journal": journal, "changed": made, "warnings": [warning] if warning else []}
    answer(as_json, fields, f"{journal}: {said}.")
    if warning and not as_json:
        typer.echo(f"warning: {warning}", err=True)


@app.command()
def insert(
    journal: Name,
    key: Key,
    payload: Annotated[str, typer.Option(help="The payload's columns, JSON.")],
    priority: Annotated[int, typer.Option(help="0 to 255, smallest first.")] = 180,
    process_in: Annotated[str | None, typer.Option(help="When to begin, from now: 30s, 10m, 1h.")] = None,
    expires_in: Annotated[str | None, typer.Option(help="When nobody wants it any more, from now.")] = None,
    as_json: Json = False,
) -> None:
    """Ask for something to be done; merged with what is asked for already."""
    body = parsed_json(payload, "--payload")
    with opened(journal) as work:
        outcome = work.insert(
            typed_key(work, key),
            body,
            priority=priority,
            process=parsed_duration(process_in, "--process-in"),
            expires=parsed_duration(expires_in, "--expires-in"),
        )
    say_ended(as_json, journal, key, outcome.value)


@app.command()
def claim(
    journal: Name,
    limit: Limit = 1,
    owner: Annotated[str | None, typer.Option(help="Who claims; this process when left out.")] = None,
    request: Annotated[str | None, typer.Option(help="Ask again with the same one after an error.")] = None,
    as_json: Json = False,
) -> None:
    """Take due entries, smallest priority and earliest date first; each line has the token to end it with."""
    with opened(journal) as work:
        items = work.claim(limit, owner=owner or f"{getpass.getuser()}@cli", request=request)
    if as_json:
        print_json([item.to_json() for item in items])
        return
    for item in items:
        typer.echo(f"{item.key}\t{item.token}\t{json.dumps(item.payload, ensure_ascii=False)}")
    if not items:
        typer.echo("Nothing is due.")


@app.command()
def refresh(journal: Name, key: Key, token: Token, as_json: Json = False) -> None:
    """Begin the time limit of a claim anew."""
    with opened(journal) as work:
        work.refresh(ticket(work, key, token))
    answer(as_json, {"journal": journal, "key": key, "outcome": "refreshed"}, f"{journal}/{key}: refreshed.")


@app.command()
def done(journal: Name, key: Key, token: Token, as_json: Json = False) -> None:
    """Say that it is done; saying so twice does no harm."""
    with opened(journal) as work:
        outcome = work.done(ticket(work, key, token))
    say_ended(as_json, journal, key, outcome.value)


@app.command()
def fail(
    journal: Name,
    key: Key,
    token: Token,
    error: Annotated[str, typer.Option(help="What went wrong.")],
    as_json: Json = False,
) -> None:
    """Say that it could not be done: it comes back later, or becomes a dead letter."""
    with opened(journal) as work:
        outcome = work.fail(ticket(work, key, token), error)
    say_ended(as_json, journal, key, outcome.value)


@app.command()
def snooze(
    journal: Name,
    key: Key,
    token: Token,
    lasting: Annotated[str, typer.Option("--for", help="How long: 30s, 10m, 1h.")],
    as_json: Json = False,
) -> None:
    """Give it back until later; counts as no failure."""
    until = parsed_duration(lasting, "--for") or timedelta()
    with opened(journal) as work:
        outcome = work.snooze(ticket(work, key, token), until)
    say_ended(as_json, journal, key, outcome.value)


@app.command()
def release(journal: Name, key: Key, token: Token, as_json: Json = False) -> None:
    """Give it back as it was."""
    with opened(journal) as work:
        outcome = work.release(ticket(work, key, token))
    say_ended(as_json, journal, key, outcome.value)


@app.command()
def cancel(
    journal: Name,
    key: Key,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Forget a key with everything that is asked for; exit code 1 where there is nothing to forget."""
    from tidemark.work.model.decision import Outcome

    demand_reason(reason, execute)
    with opened(journal) as work:
        found, who = work.get(typed_key(work, key)), by or getpass.getuser()
        outcome = None
        if execute:
            outcome = work.cancel(typed_key(work, key), who=who, reason=reason.strip())
    is_nothing = found is None if outcome is None else outcome is not Outcome.CANCELLED
    entry = None if found is None else found.to_json()
    plan = {
        "journal": journal,
        "key": key,
        "entry": entry,
        "executed": execute and not is_nothing,
        "outcome": outcome,
    }
    if is_nothing:
        say_nothing(as_json, plan, f"{journal}/{key}: there is no such entry. Nothing was cancelled.")
    status = f"{found.status}, payload {found.payload}" if found else "came while this was planned"
    say_planned(as_json, plan, [f"{journal}: cancel {key}", f"  {status}"], who if execute else None)


@app.command(name="list")
def list_entries(journal: Name, limit: Limit = 100, as_json: Json = False) -> None:
    """Show the live entries in the order of work."""
    with opened(journal) as work:
        entries = [entry for entry, _ in zip(work.entries(), range(limit), strict=False)]
    if as_json:
        print_json([entry.to_json() for entry in entries])
        return
    from tidemark.cli.output.work import entries_table

    print_table(entries_table(entries))


@app.command()
def dead(
    journal: Name,
    limit: Limit = 100,
    unseen: Annotated[bool, typer.Option("--unseen", help="Only those not looked at yet.")] = False,
    as_json: Json = False,
) -> None:
    """Show the dead letters, newest first, and who has looked at them."""
    with opened(journal) as work:
        letters = [letter for letter, _ in zip(work.dead(unseen=unseen), range(limit), strict=False)]
    if as_json:
        print_json([letter.to_json() for letter in letters])
        return
    from tidemark.cli.output.work import dead_table

    print_table(dead_table(letters))


@app.command()
def seen(
    journal: Name,
    key: Annotated[str | None, typer.Argument(help="One key; all dead letters when left out.")] = None,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say that a person has looked at dead letters: work.sweep reports these no longer. They stay."""
    demand_reason(reason, execute)
    with opened(journal) as work:
        wanted = None if key is None else typed_key(work, key)
        letters = [one for one in work.dead(unseen=True) if wanted in (None, one.key)]
        who = by or getpass.getuser()
        for letter in letters if execute else ():
            work.mark_seen(letter, who=who, reason=reason.strip())
    plan = {"journal": journal, "keys": [one.key for one in letters], "executed": execute and bool(letters)}
    if not letters:
        about = f"{journal}/{key}" if key is not None else journal
        say_nothing(as_json, plan, f"{about}: there is no dead letter left to look at. Nothing was changed.")
    lines = [f"{journal}: mark {len(letters)} dead letters as seen"]
    say_planned(as_json, plan, [*lines, *letter_lines(letters)], who if execute else None)


@app.command()
def redrive(
    journal: Name,
    key: Annotated[str | None, typer.Argument(help="One key; all dead letters when left out.")] = None,
    reason: Reason = "",
    execute: Execute = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Put dead letters back, to be done as soon as possible."""
    demand_reason(reason, execute)
    with opened(journal) as work:
        wanted = None if key is None else typed_key(work, key)
        letters, who = [one for one in work.dead() if wanted in (None, one.key)], by or getpass.getuser()
        for letter in letters if execute else ():
            work.redrive(letter, who=who, reason=reason.strip())
    plan = {"journal": journal, "keys": [letter.key for letter in letters], "executed": execute}
    lines = [f"{journal}: redrive {len(letters)} dead letters"]
    say_planned(as_json, plan, [*lines, *letter_lines(letters)], who if execute else None)


@app.command()
def stats(journal: Name, as_json: Json = False) -> None:
    """Show the journal in numbers."""
    with opened(journal) as work:
        found, warning = work.stats(), work.copies_warning()
    if as_json:
        print_json({**asdict(found), "warnings": [warning] if warning else []})
        return
    from tidemark.cli.output.work import figures_lines

    for line in figures_lines(found):
        typer.echo(line)
    if warning:
        typer.echo(f"  warning: {warning}")


@app.command()
def history(
    journal: Name,
    days: Annotated[int, typer.Option(min=0, help="How many days back.")] = 7,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """Show which claims ended, how and when; empty unless the journal declares `history`."""
    with opened(journal) as work:
        runs = [run for run, _ in zip(work.history(days), range(limit), strict=False)]
    if as_json:
        print_json([run.to_json() for run in runs])
        return
    from tidemark.cli.output.work import history_table

    print_table(history_table(runs))


@app.command()
def pause(journal: Name, reason: Reason = "", by: By = None, as_json: Json = False) -> None:
    """Give nothing out until it is resumed; inserts and running work go on."""
    demand_reason(reason, True)
    with opened(journal) as work:
        work.pause(by or getpass.getuser(), reason.strip())
    answer(as_json, {"journal": journal, "paused": True}, f"{journal}: paused.")


@app.command()
def resume(journal: Name, reason: Reason = "", by: By = None, as_json: Json = False) -> None:
    """Give out again."""
    demand_reason(reason, True)
    with opened(journal) as work:
        work.resume(by or getpass.getuser(), reason.strip())
    answer(as_json, {"journal": journal, "paused": False}, f"{journal}: gives out again.")
