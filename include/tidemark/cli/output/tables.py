"""Tables and lines for people: what commands about pipelines print without ``--json``."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.dead_letters.listing import ListedLetter
from tidemark.delivery.operator.accept_plan import Consequence
from tidemark.delivery.renditions.declared import kind_has_times
from tidemark.delivery.state.writer_state import Acknowledgement, OffsetEntry, Redelivered, WriterState
from tidemark.delivery.status import FollowStatus, PipelineStatus, WriterStatus
from tidemark.log.message_text import text_of
from tidemark.log.model.gate import LogGate
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.verify import LogVerification
from tidemark.pipeline.model import Pipeline

CUT = 60
"""Characters of a key or a payload that a table shows."""


def pipelines_table(pipelines: Sequence[Pipeline], orphans: Sequence[PipelineStatus] = ()) -> Table:
    """One line per pipeline; at the end those that no file declares."""
    table = Table("pipeline", "topics", "schedule", "writers", box=None, pad_edge=False)
    for pipeline in pipelines:
        kafka = pipeline.source.kafka
        topics = [*kafka.topics, *(f"{prefix}…" for prefix in kafka.topic_prefixes)]
        writers = ", ".join(f"{writer.name} ({writer.kind})" for writer in pipeline.writers)
        table.add_row(pipeline.name, ", ".join(topics), pipeline.schedule or "by hand", writers)
    for orphan in orphans:
        known = ", ".join(f"{writer.name} ({writer.kind})" for writer in orphan.writers)
        table.add_row(f"{orphan.pipeline} (no file)", "", "never", known)
    return table


def status_table(status: PipelineStatus) -> RenderableType:
    """One pipeline: a line for the log, a line per writer."""
    log = status.log
    bound = moment(status.upper) if status.upper else "never"
    mark = "" if status.declared else " (no file)"
    head = (
        f"[bold]{status.pipeline}[/bold]{mark}  log end {log.end:,}, {log.messages:,} messages in "
        f"{log.segments} segment{'' if log.segments == 1 else 's'}, {_size(log.bytes)}; bound until {bound}"
    )
    if status.unpublished:
        head += "; a binding waits to be published"
    if status.follow.followed:
        head += f"\n{_followed(status.follow)}"
        for name, error in status.follow.needs_person.items():
            head += f"\n[red]{escape(name)} is left out until the run ends:[/red] {escape(error)}"
    if log.reason:
        head += f"\n[red]the log's gate is closed:[/red] {escape(log.reason)}"
    table = Table("writer", "kind", "position", "lag", "gate", "reason", box=None, pad_edge=False)
    for writer in status.writers:
        unregistered = "refused" if writer.reason else "not yet registered"
        gate = writer.gate if writer.registered else unregistered
        table.add_row(
            f"{writer.name} (retired)" if writer.retired else writer.name,
            writer.kind,
            f"{writer.position:,}",
            f"{writer.lag:,}",
            gate,
            escape(writer.reason or ""),
        )
    further = [
        f"[yellow]{escape(writer.name)}[/yellow] {escape(str(one))}"
        for writer in status.writers
        for one in writer.left_out
    ]
    further += [line for writer in status.writers for line in _renditions(status.pipeline, writer)]
    further += [
        f"  {escape(writer.name)}: readable before {writer.frontier} ({moment(writer.frontier)})"
        for writer in status.writers
        if writer.frontier is not None and kind_has_times(writer.kind)
    ]
    further += [
        f"  {escape(writer.name)}: {escape(writer.hint)}"
        for writer in status.writers
        if writer.hint is not None
    ]
    return Group(head, table, *further, "")


def _renditions(pipeline: str, writer: WriterStatus) -> Iterator[str]:
    """Lines about what differs in the file, and about renditions where there is more than one."""
    if writer.differs:
        said = escape("; ".join(writer.differs))
        yield (
            f"[yellow]{escape(writer.name)}[/yellow] differs in the file, and goes on as it is: {said}. "
            f"Build the next rendition: tidemark renditions build {pipeline} {escape(writer.name)}"
        )
    for one in writer.renditions if len(writer.renditions) > 1 else ():
        parts = [f"{one.state} in {one.place}", f"position {one.position:,}", f"lag {one.lag:,}"]
        if one.gate != "open":
            parts.append(f"gate {one.gate}" + (f" ({one.reason})" if one.reason else ""))
        if one.soak_until is not None:
            parts.append(f"delivered to until {moment(one.soak_until)}")
        if one.progress is not None and one.progress.ids_left:
            left = f"{one.progress.bindings_left:,} bindings left"
            end = one.progress.estimated_end
            parts.append(f"{left}, until about {moment(end)}" if end else left)
        yield f"  {escape(one.consumer)}: {escape(', '.join(parts))}"


def _followed(follow: FollowStatus) -> str:
    since = moment(follow.since or 0)
    if follow.last_round is None:
        lag = f"; lag {follow.lag:.1f} s" if follow.lag else ""
        return f"followed since {since}; no round has ended yet{lag}"
    return (
        f"followed since {since}; {follow.rounds:,} rounds, {follow.records:,} records, the last round at "
        f"{moment(follow.last_round)}; lag {follow.lag or 0:.1f} s"
    )


def messages_table(messages: Sequence[Mapping[str, Any]]) -> Table:
    """One line per message, with truncated payloads."""
    table = Table("id", "sent", "from", "key", "value", "headers", box=None, pad_edge=False)
    for message in messages:
        headers = ", ".join(header["name"] for header in message["headers"] or ())
        table.add_row(
            str(message["id"]),
            moment(message["timestamp"] * 1000),
            escape(f"{message['topic']}/{message['partition']}@{message['offset']}"),
            escape(_cut(message["key"])),
            escape(_cut(message["value"])),
            escape(headers),
        )
    return table


def verification_lines(found: LogVerification) -> Iterator[str]:
    """What was verified, what explains the gaps, and what is wrong."""
    yield (
        f"{found.pipeline}: {found.files:,} files, {found.messages:,} messages, {_size(found.bytes)}; "
        f"ids 0 to {found.end:,} in {found.bindings:,} bindings"
    )
    if found.archived:
        yield f"  {found.archived:,} of the bindings are in binding lists, the others in the control plane"
    if found.compacted_below:
        yield f"  compacted below id {found.compacted_below:,}: {found.dropped:,} ids there have no message"
    if found.holes:
        yield f"  {found.holes:,} ids have no message: markers of transactions, aborted records, losses"
    for one in found.losses:
        yield f"  accepted by {one.who}: {one.loss} ({one.reason})"
    for problem in found.problems:
        yield f"  [red]wrong:[/red] {escape(problem)}"
    yield "Everything is as it was written." if found.is_right else f"{len(found.problems)} problems."


def acceptance_lines(
    pipeline: str,
    gate: LogGate | None,
    before: Sequence[AcceptedLoss],
    consequences: Sequence[Consequence],
) -> Iterator[str]:
    """What an operator accepts by opening a log's gate, and the consequences for the writers.

    Without a gate, ``before`` are the losses that were accepted without a plan for the writers.
    """
    if gate:
        yield f"{pipeline}: the log's gate is closed: {gate.reason}"
        yield from (f"  lost for ever: {loss}" for loss in gate.losses)
        for change in gate.partitions:
            counts = f"by {change.computed_by}, not by {change.found}"
            yield f"  {change.topic}: the partitions of keys are computed {counts}, from here on as before"
        if gate.ids:
            yield f"  ids {gate.ids[0]} to {gate.ids[1]}"
    else:
        yield f"{pipeline}: accepted before, but not what becomes of the writers:"
        yield from (f"  {one.loss}, accepted by {one.who}" for one in before)
    yield from (f"  {one}" for one in consequences)


def _cut(data: bytes | None) -> str:
    text = text_of(data)
    if text is None:
        return "–"
    shown = text if isinstance(text, str) else f"{len(data or b'')} bytes: {text['base64']}"
    return shown if len(shown) <= CUT else f"{shown[:CUT]}…"


def moment(microseconds: int) -> str:
    """A time as text, in UTC."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def history_table(
    state: WriterState,
    namespaces: Mapping[str, int],
    history: Sequence[OffsetEntry],
    deeds: Sequence[AuditEntry],
    passed: Sequence[Acknowledgement] = (),
    redelivered: Mapping[int, Redelivered] | None = None,
) -> RenderableType:
    """One writer: position, namespaces, offset log, acknowledged messages and operators' actions."""
    name = escape(f"{state.pipeline}/{state.name}")
    head = f"[bold]{name}[/bold]  position {state.position:,}, {state.status}"
    if state.lease:
        head += f"; held by {escape(state.lease.holder)} until {moment(state.lease.deadline)}"
    by_namespace = Table("namespace", "last id", box=None, pad_edge=False)
    for name, last_id in sorted(namespaces.items()):
        by_namespace.add_row(escape(name), f"{last_id:,}")
    moves = Table("when", "position", "what", "by", "why", box=None, pad_edge=False)
    for entry in history:
        moves.add_row(
            moment(entry.at), f"{entry.position:,}", entry.kind, escape(entry.by), escape(entry.reason or "")
        )
    acts = Table("when", "who", "did", "why", box=None, pad_edge=False)
    for deed in deeds:
        acts.add_row(moment(deed.at), escape(deed.who), escape(deed.what), escape(deed.reason))
    shown: list[RenderableType] = [head, "", by_namespace, "", moves]
    if passed:
        shown += ["", _acknowledged_table(passed, redelivered or {})]
    return Group(*shown, "", acts) if deeds else Group(*shown)


def _acknowledged_table(passed: Sequence[Acknowledgement], redelivered: Mapping[int, Redelivered]) -> Table:
    table = Table("acknowledged ids", "when", "who", "why", "redelivered", box=None, pad_edge=False)
    for one in passed:
        after_all = [id_ for id_ in one.ids if id_ in redelivered]
        table.add_row(
            ranges_of(one.ids),
            moment(one.at) if one.at is not None else "",
            escape(one.by),
            escape(one.reason or ""),
            ranges_of(after_all),
        )
    return table


def ranges_of(ids: Sequence[int]) -> str:
    """Ids as text, consecutive ones as ranges."""
    ranges: list[list[int]] = []
    for id_ in sorted(ids):
        if ranges and id_ == ranges[-1][1] + 1:
            ranges[-1][1] = id_
        else:
            ranges.append([id_, id_])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)


def letters_table(letters: Sequence[ListedLetter]) -> Table:
    """One line per dead letter, without payloads."""
    names = ("writer", "id", "from", "key", "fate", "when", "who", "why", "error")
    table = Table(*names, box=None, pad_edge=False)
    for one in letters:
        letter = one.letter
        when = one.redelivered.at if one.redelivered else letter.at if letter else None
        table.add_row(
            escape(one.writer),
            str(one.id),
            escape(one.place),
            escape(_cut(letter.message["key"])) if letter else "",
            one.fate.value,
            moment(when) if when is not None else "",
            escape(letter.who if letter else ""),
            escape(letter.reason if letter else ""),
            escape(letter.error if letter else ""),
        )
    return table


def letter_lines(one: ListedLetter) -> Iterator[str]:
    """A whole dead letter."""
    yield f"{one.pipeline}/{one.writer}: id {one.id} ({one.place}), {one.fate}"
    if one.letter is None:
        return
    letter = one.letter
    shown = letter.to_dict()["message"]
    yield f"  error:  {letter.error}"
    yield f"  let pass by {letter.who}, {moment(letter.at)}: {letter.reason}"
    if done := one.redelivered:
        yield f"  redelivered by {done.by}, {moment(done.at)}: {done.reason}"
    yield f"  sent:   {moment(shown['timestamp'] * 1000)}"
    for name in ("key", "value"):
        yield f"  {name + ':':<7} {_whole(shown[name])}"
    for name, value in shown["headers"]:
        yield f"  header {name}: {_whole(value)}"


def _whole(text: Any) -> str:
    if text is None:
        return "–"
    return text if isinstance(text, str) else f"base64 {text['base64']}"
