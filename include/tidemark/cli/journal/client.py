"""``tidemark journal append``, ``delete``, ``purge``, ``read`` and ``pointer``: a pipeline's journal by hand.

Everything is checked before anything is sent. A delete or a purge shows its plan first; the operator and the
reason travel with it, in headers that only the commit log keeps.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.options import Json, PipelineName, print_json
from tidemark.cli.plans import PlanOptions, carry_out, plan_options

if TYPE_CHECKING:
    from tidemark.client.events import Event
    from tidemark.client.journal import Journal
    from tidemark.client.settings import JournalSettings
    from tidemark.delivery.operator.action_plan import ActionPlan

BY_HEADER, REASON_HEADER = "tidemark-by", "tidemark-reason"

Key = Annotated[str, typer.Argument(metavar="KEY", help="The entity.")]
Topic = Annotated[str | None, typer.Option(help="Its topic, where the pipeline reads several.")]
Writer = Annotated[str | None, typer.Option(help="The journal's writer, where the pipeline has several.")]


def append(
    pipeline: PipelineName,
    key: Key,
    json_event: Annotated[
        list[str] | None, typer.Option(help="An event's payload, JSON; `-` for one per line from stdin.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="An event's payload, text; `-` for one per line from stdin.")
    ] = None,
    seq_nr: Annotated[
        int | None, typer.Option(min=1, help="The first event's number; by default the next one.")
    ] = None,
    expected_last: Annotated[
        int | None,
        typer.Option(
            min=0, help="Append only if this is the last event's number; 0: if there is no such entity."
        ),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag of every event.")] = None,
    expire_after: Annotated[
        str | None, typer.Option(help="How long the entity lives from now on, such as `30 days`.")
    ] = None,
    topic: Topic = None,
    writer: Writer = None,
    as_json: Json = False,
) -> None:
    """Append events to an entity, all in one record."""
    from tidemark.client.actions import Checks

    if bool(json_event) == bool(text):
        raise typer.BadParameter("give either --json-event or --text", param_hint="--json-event")
    payloads = list(_payloads(json_event or text or []))
    # Checked before the next number is requested, which sends a mark to Kafka.
    _events(payloads, bool(json_event), seq_nr or 1, tag or [])
    with _opened(pipeline, key, topic, writer) as (settings, journal):
        Checks(settings.topic).expire_after(key, expire_after)
        first = seq_nr if seq_nr is not None else _next(journal, key, expected_last)
        events = _events(payloads, bool(json_event), first, tag or [])
        placed = journal.append(key, events, expire_after=expire_after, expected_last=expected_last)
    if as_json:
        numbers = {"first": first, "last": events[-1].seq_nr}
        print_json({"pipeline": pipeline, "topic": settings.topic, "key": key, **numbers, **placed._asdict()})
        return
    last = "" if len(events) == 1 else f" to {events[-1].seq_nr}"
    typer.echo(f"{settings.topic}/{key}: event {first}{last} at {placed.partition}@{placed.offset}.")


@plan_options
def delete(
    pipeline: PipelineName,
    key: Key,
    to: Annotated[int, typer.Option(min=1, help="The last event to delete.")],
    topic: Topic = None,
    writer: Writer = None,
    *,
    options: PlanOptions,
) -> None:
    """Delete an entity's events up to a number."""
    options.require_reason()
    with _opened(pipeline, key, topic, writer) as (settings, journal):
        carry_out(_plan_delete(pipeline, settings, journal, key, to), options)


@plan_options
def purge(
    pipeline: PipelineName,
    key: Key,
    topic: Topic = None,
    writer: Writer = None,
    *,
    options: PlanOptions,
) -> None:
    """Remove an entity with all its events."""
    options.require_reason()
    with _opened(pipeline, key, topic, writer) as (settings, journal):
        carry_out(_plan_purge(pipeline, settings, journal, key), options)


def read(
    pipeline: PipelineName,
    key: Key,
    from_seq_nr: Annotated[int, typer.Option("--from", min=1, help="The first event to show.")] = 1,
    topic: Topic = None,
    writer: Writer = None,
    as_json: Json = False,
) -> None:
    """Show an entity's events, also those not replicated yet; with --json one per line."""
    from tidemark.cli.output.events import EVENT_HEADINGS, event_json, event_line

    with _opened(pipeline, key, topic, writer) as (_, journal):
        events = journal.read(key, from_seq_nr)
        if as_json:
            for event in events:
                print(event_json(event))
            return
        typer.echo(EVENT_HEADINGS)
        count = 0
        for event in events:
            count += 1
            typer.echo(event_line(event))
        typer.echo(f"{count} event{'' if count == 1 else 's'}.")


def pointer(
    pipeline: PipelineName, key: Key, topic: Topic = None, writer: Writer = None, as_json: Json = False
) -> None:
    """Show the number of an entity's last event, deleted or not."""
    with _opened(pipeline, key, topic, writer) as (settings, journal):
        last = journal.pointer(key)
    if as_json:
        print_json({"pipeline": pipeline, "topic": settings.topic, "key": key, "seq_nr": last})
        return
    typer.echo("There is no such entity." if last is None else str(last))


def _next(journal: "Journal", key: str, expected_last: int | None) -> int:
    return 1 + (expected_last if expected_last is not None else journal.pointer(key) or 0)


@contextmanager
def _opened(
    pipeline: str, key: str, topic: str | None, writer: str | None
) -> Iterator[tuple["JournalSettings", "Journal"]]:
    """A pipeline's journal, with the connections that the environment has for it."""
    from tidemark.cli.connections import look_up
    from tidemark.client.journal import Journal
    from tidemark.client.settings import settings_of

    settings = settings_of(pipeline, topic, writer, look_up)
    # A command reads one entity: keeping what it reads of the others would only take time.
    with Journal.of_settings(settings, cache_bytes=0) as journal:
        yield settings, journal


def _payloads(given: Sequence[str]) -> Iterator[str]:
    for payload in given:
        if payload == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin if line.strip())
        else:
            yield payload


def _events(payloads: Sequence[str], is_json: bool, first: int, tags: Sequence[str]) -> "list[Event]":
    from tidemark.client.events import Event

    if not payloads:
        raise typer.BadParameter("there is no event on stdin", param_hint="-")
    make = Event.json_text if is_json else Event.text
    return [make(first + place, payload, tags) for place, payload in enumerate(payloads)]


def _plan_delete(
    pipeline: str, settings: "JournalSettings", journal: "Journal", key: str, to: int
) -> "ActionPlan":
    from tidemark.consensus.audit_trail import AuditEntry
    from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible

    name, last = settings.declared.name, journal.pointer(key)
    if last is None:
        raise NotPossible(pipeline, name, f"topic {settings.topic} has no entity {key}.")
    details: dict[str, Any] = {"topic": settings.topic, "key": key, "to": min(to, last), "last": last}

    def execute(deed: AuditEntry) -> None:
        placed = journal.delete(key, to, headers=_headers(deed))
        details.update(placed._asdict() if placed else {"partition": None, "offset": None})

    lines = (
        f"topic {settings.topic}, entity {key}: the last event is {last}",
        f"events up to {min(to, last)} are deleted for every reader, and cannot be brought back",
    )
    return ActionPlan("delete", pipeline, name, lines, details, execute)


def _plan_purge(pipeline: str, settings: "JournalSettings", journal: "Journal", key: str) -> "ActionPlan":
    from tidemark.consensus.audit_trail import AuditEntry
    from tidemark.delivery.operator.action_plan import ActionPlan

    name, last = settings.declared.name, journal.pointer(key)
    details: dict[str, Any] = {"topic": settings.topic, "key": key, "last": last}

    def execute(deed: AuditEntry) -> None:
        details.update(journal.purge(key, headers=_headers(deed))._asdict())

    has = "there is no such entity" if last is None else f"the last event is {last}"
    lines = (
        f"topic {settings.topic}, entity {key}: {has}",
        "the entity is removed for every reader with everything it has, and cannot be brought back",
    )
    return ActionPlan("purge", pipeline, name, lines, details, execute)


def _headers(deed: Any) -> dict[str, str]:
    return {BY_HEADER: deed.who, REASON_HEADER: deed.reason}
