"""``tidemark work``: work journals by hand: insert entries, claim them, end claims, handle dead letters.

Commands that cannot be undone (cancel, redrive, seen) show their plan first.
"""

import getpass
import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from tidemark.cli.options import By, Json, Reason, parse_wait, print_json
from tidemark.cli.plans import PlanOptions, plan_options
from tidemark.cli.work.arguments import claim_ticket, open_journal, parse_json, parse_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemark.work.claimed_item import Ticket
    from tidemark.work.client import Work
    from tidemark.work.model.decision import Outcome
    from tidemark.work.model.entry_view import WorkEntry

app = typer.Typer(help="Work journals.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="JOURNAL", help="Name of the work journal.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key: its text, or JSON for several columns.")]
Token = Annotated[str, typer.Argument(metavar="TOKEN", help="The token of the claim.")]
SomeKey = Annotated[str | None, typer.Argument(help="One key; by default all dead letters.")]
Limit = Annotated[int, typer.Option(min=1, help="How many at most.")]


@app.command()
def create(journal: Name, as_json: Json = False) -> None:
    """Create a journal that a file in include/work declares, or update it to a changed declaration."""
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
    print_answer(as_json, fields, f"{journal}: {said}.")
    if warning and not as_json:
        typer.echo(f"warning: {warning}", err=True)


@app.command()
def insert(
    journal: Name,
    key: Key,
    payload: Annotated[str, typer.Option(help="The payload's columns, JSON.")],
    priority: Annotated[int, typer.Option(help="0 to 255, smallest first.")] = 180,
    process_in: Annotated[str | None, typer.Option(help="When it is due, from now: 30s, 10m, 1h.")] = None,
    expires_in: Annotated[str | None, typer.Option(help="When it expires, from now.")] = None,
    as_json: Json = False,
) -> None:
    """Insert an entry, or merge it with the existing entry of its key."""
    body = parse_json(payload, "--payload")
    with open_journal(journal) as work:
        outcome = work.insert(
            parse_key(work, key),
            body,
            priority=priority,
            process=parse_wait(process_in, "--process-in"),
            expires=parse_wait(expires_in, "--expires-in"),
        )
    print_outcome(as_json, journal, key, outcome.value)


@app.command()
def claim(
    journal: Name,
    limit: Limit = 1,
    owner: Annotated[str | None, typer.Option(help="The owner of the claim; by default this user.")] = None,
    request: Annotated[str | None, typer.Option(help="An id of the request, repeated in a retry.")] = None,
    as_json: Json = False,
) -> None:
    """Claim due entries, lowest priority number and earliest date first; each line has the claim's token."""
    with open_journal(journal) as work:
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
    """Restart the time limit of a claim."""
    with open_journal(journal) as work:
        work.refresh(claim_ticket(work, key, token))
    print_outcome(as_json, journal, key, "refreshed")


@app.command()
def done(journal: Name, key: Key, token: Token, as_json: Json = False) -> None:
    """End a claim as done. Idempotent."""
    end_claim(as_json, journal, key, token, lambda work, claim: work.done(claim))


@app.command()
def fail(
    journal: Name,
    key: Key,
    token: Token,
    error: Annotated[str, typer.Option(help="What went wrong.")],
    as_json: Json = False,
) -> None:
    """End a claim as failed: the entry is retried later, or becomes a dead letter."""
    end_claim(as_json, journal, key, token, lambda work, claim: work.fail(claim, error))


@app.command()
def snooze(
    journal: Name,
    key: Key,
    token: Token,
    lasting: Annotated[str, typer.Option("--for", help="How long: 30s, 10m, 1h.")],
    as_json: Json = False,
) -> None:
    """Return an entry until later; does not count as a failure."""
    until = parse_wait(lasting, "--for") or timedelta()
    end_claim(as_json, journal, key, token, lambda work, claim: work.snooze(claim, until))


@app.command()
def release(journal: Name, key: Key, token: Token, as_json: Json = False) -> None:
    """Return an entry as it was."""
    end_claim(as_json, journal, key, token, lambda work, claim: work.release(claim))


@app.command()
@plan_options
def cancel(journal: Name, key: Key, *, options: PlanOptions) -> None:
    """Remove a key with everything inserted for it; exit code 1 if there is no entry."""
    from tidemark.work.model.decision import Outcome

    options.require_reason()
    with open_journal(journal) as work:
        found, outcome = work.get(parse_key(work, key)), None
        if options.execute:
            outcome = work.cancel(parse_key(work, key), who=options.who, reason=options.reason)
    is_nothing = found is None if outcome is None else outcome is not Outcome.CANCELLED
    plan = {
        "journal": journal,
        "key": key,
        "entry": None if found is None else found.to_json(),
        "executed": options.execute and not is_nothing,
        "outcome": outcome,
    }
    if is_nothing:
        nothing_found(options, plan, f"{journal}/{key}: there is no such entry. Nothing was cancelled.")
    status = f"{found.status}, payload {found.payload}" if found else "came while this was planned"
    options.print_result(plan, [f"{journal}: cancel {key}", f"  {status}"])


@app.command(name="list")
def list_entries(journal: Name, limit: Limit = 100, as_json: Json = False) -> None:
    """Show the live entries in the order of claims."""
    with open_journal(journal) as work:
        entries = [entry for entry, _ in zip(work.entries(), range(limit), strict=False)]
    if as_json:
        print_json([entry.to_json() for entry in entries])
        return
    from tidemark.cli.output.work import entries_table

    Console().print(entries_table(entries))


@app.command()
def dead(
    journal: Name,
    limit: Limit = 100,
    unseen: Annotated[bool, typer.Option("--unseen", help="Only those not seen yet.")] = False,
    as_json: Json = False,
) -> None:
    """Show the dead letters, newest first, and whether they were seen."""
    with open_journal(journal) as work:
        letters = [letter for letter, _ in zip(work.dead(unseen=unseen), range(limit), strict=False)]
    if as_json:
        print_json([letter.to_json() for letter in letters])
        return
    from tidemark.cli.output.work import dead_table

    Console().print(dead_table(letters))


@app.command()
@plan_options
def seen(journal: Name, key: SomeKey = None, *, options: PlanOptions) -> None:
    """Mark dead letters as seen: they stay, but work.sweep no longer reports them."""
    from tidemark.cli.output.work import dead_lines

    options.require_reason()
    with open_journal(journal) as work:
        letters = dead_letters(work, key, unseen=True)
        for letter in letters if options.execute else ():
            work.mark_seen(letter, who=options.who, reason=options.reason)
    plan = letters_plan(journal, letters, executed=options.execute and bool(letters))
    if not letters:
        about = f"{journal}/{key}" if key is not None else journal
        nothing_found(
            options, plan, f"{about}: there is no dead letter left to look at. Nothing was changed."
        )
    lines = [f"{journal}: mark {len(letters)} dead letters as seen", *dead_lines(letters)]
    options.print_result(plan, lines)


@app.command()
@plan_options
def redrive(journal: Name, key: SomeKey = None, *, options: PlanOptions) -> None:
    """Put dead letters back, due at once."""
    from tidemark.cli.output.work import dead_lines

    options.require_reason()
    with open_journal(journal) as work:
        letters = dead_letters(work, key)
        for letter in letters if options.execute else ():
            work.redrive(letter, who=options.who, reason=options.reason)
    plan = letters_plan(journal, letters, executed=options.execute)
    options.print_result(plan, [f"{journal}: redrive {len(letters)} dead letters", *dead_lines(letters)])


@app.command()
def stats(journal: Name, as_json: Json = False) -> None:
    """Show the figures of the journal."""
    with open_journal(journal) as work:
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
    with open_journal(journal) as work:
        runs = [run for run, _ in zip(work.history(days), range(limit), strict=False)]
    if as_json:
        print_json([run.to_json() for run in runs])
        return
    from tidemark.cli.output.work import history_table

    Console().print(history_table(runs))


@app.command()
def pause(journal: Name, reason: Reason = "", by: By = None, as_json: Json = False) -> None:
    """Pause claims until the journal is resumed; inserts and claimed work go on."""
    _set_paused(journal, reason, by, as_json, paused=True)


@app.command()
def resume(journal: Name, reason: Reason = "", by: By = None, as_json: Json = False) -> None:
    """Resume claims."""
    _set_paused(journal, reason, by, as_json, paused=False)


def _set_paused(journal: str, reason: str, by: str | None, as_json: bool, *, paused: bool) -> None:
    demand_reason(reason)
    with open_journal(journal) as work:
        change = work.pause if paused else work.resume
        change(by or getpass.getuser(), reason.strip())
    text = f"{journal}: paused." if paused else f"{journal}: gives out again."
    print_answer(as_json, {"journal": journal, "paused": paused}, text)


def dead_letters(work: "Work", key: str | None, *, unseen: bool = False) -> "list[WorkEntry]":
    """The dead letters of one key, or all of them."""
    wanted = None if key is None else parse_key(work, key)
    return [letter for letter in work.dead(unseen=unseen) if wanted in (None, letter.key)]


def letters_plan(journal: str, letters: "list[WorkEntry]", *, executed: bool) -> dict[str, Any]:
    """A plan about dead letters, for ``--json``."""
    return {"journal": journal, "keys": [letter.key for letter in letters], "executed": executed}


def nothing_found(options: PlanOptions, plan: dict[str, Any], line: str) -> NoReturn:
    """Report that the plan has no object: exit code 1."""
    if options.as_json:
        print_json(plan)
    typer.echo(line, err=True)
    raise typer.Exit(1)


def demand_reason(reason: str) -> None:
    """Refuse a command that takes effect at once without a reason: exit code 2."""
    if not reason.strip():
        raise typer.BadParameter("say why", param_hint="--reason")


def end_claim(
    as_json: bool, journal: str, key: str, token: str, end: "Callable[[Work, Ticket], Outcome]"
) -> None:
    """End the claim of a key, and print what became of the entry."""
    with open_journal(journal) as work:
        outcome = end(work, claim_ticket(work, key, token))
    print_outcome(as_json, journal, key, outcome.value)


def print_outcome(as_json: bool, journal: str, key: str, outcome: str) -> None:
    """Print what became of a key."""
    print_answer(
        as_json, {"journal": journal, "key": key, "outcome": outcome}, f"{journal}/{key}: {outcome}."
    )


def print_answer(as_json: bool, fields: dict[str, Any], line: str) -> None:
    """JSON for programs, a line for people."""
    if as_json:
        print_json(fields)
    else:
        typer.echo(line)
