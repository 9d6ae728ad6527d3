"""The writers of a pipeline in the control plane: one object each, changed by compare-and-set only.

The rows of an object:

- ``head``: position, gate, lease and shape.
- ``ns/…``: the last finished id of a namespace.
- ``ack/…``: the offset log, one row per move of the position.
- ``acknowledged/…``: the ids of one acknowledgement.
- ``redelivered/…``: an acknowledged id that was written later; ``redelivering/…`` while that is under way.
- ``left/…``: a topic that is left out.
- ``digest/…``: the digests of a binding, for kinds whose output has times.
- ``audit/…``: an operator's action.

A position only grows, except by a rewind, which has an entry kind of its own. Which process may change what
is decided by the callers: ``state.lease``, ``deliver``, ``resume``, ``operator`` and ``state.offset_log``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import Lease
from tidemark.consensus.objects import AFTER_EVERY_NAME, Change, Consensus, ObjectKey, ObjectKind, RowRange
from tidemark.consensus.update import retry_outpaced
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.handed_back import closing, handed_back_before
from tidemark.delivery.state.offset_log_plan import ACK, ack_row
from tidemark.delivery.state.writer_state import (
    LEFT_OUT,
    WRITER_AUDIT,
    Acknowledgement,
    Cause,
    Ended,
    HandedBack,
    LeftOut,
    Newest,
    OffsetEntry,
    OffsetEntryKind,
    Redelivered,
    TopicStart,
    WriterGate,
    WriterStanding,
    WriterState,
)
from tidemark.errors import with_fields
from tidemark.log.model.binding import NOTHING_YET

HEAD, AUDIT = "head", "audit/"
ACKNOWLEDGED, REDELIVERED, REDELIVERING = "acknowledged/", "redelivered/", "redelivering/"
DIGEST = "digest/"
PAGE = 500
ALL_BUT_AUDIT = (RowRange("", AUDIT), RowRange(AUDIT + AFTER_EVERY_NAME, AFTER_EVERY_NAME))


@with_fields
class ShapeChanged(DeliveryError):
    """A setting that shapes a writer's output is not what it was when the writer was registered."""

    needs_person = True

    pipeline: str
    writer: str
    changed: Mapping[str, tuple[Any, Any]]

    def __str__(self) -> str:
        what = ", ".join(
            (f"{key} was {old!r} and is now {new!r}" for key, (old, new) in self.changed.items())
        )
        return (
            f"{self.pipeline}/{self.writer}: {what}. Nothing was delivered, because old and new output "
            "would mix. Change it back, or add a writer under a new name with the new setting."
        )


@with_fields
class ConsumerEnded(DeliveryError):
    """The rendition that a consumer delivered to was taken out of use for good."""

    needs_person = True

    pipeline: str
    writer: str

    text = (
        "{pipeline}/{writer}: this consumer has ended, because its rendition was retired or given up. "
        "Nothing was delivered or changed. Look at the others: tidemark renditions {pipeline}"
    )


def refuse_ended(state: WriterState) -> None:
    """Raise ``ConsumerEnded`` for a consumer that delivers nothing any more."""
    if state.ended is not None:
        raise ConsumerEnded(state.pipeline, state.name)


def refuse_other_shape(known: WriterState, shape: Mapping[str, Any]) -> None:
    """Raise ``ShapeChanged`` where a shape differs from the one that the writer was registered with."""
    pairs = {key: (known.shape.get(key), shape.get(key)) for key in sorted({*known.shape, *shape})}
    if changed := {key: (old, new) for key, (old, new) in pairs.items() if old != new}:
        raise ShapeChanged(known.pipeline, known.name, changed)


class Positions:
    """The writers of one pipeline."""

    def __init__(self, consensus: Consensus, pipeline: str) -> None:
        self.consensus = consensus
        self.pipeline = pipeline

    def load(self, writer: str) -> WriterState | None:
        """The writer's state; None when it is not registered."""
        return self.load_version(writer)[1]

    def version(self, writer: str) -> int:
        """The version of a writer's object, registered or not. Versions are never reused."""
        return self.load_version(writer)[0]

    def load_version(self, writer: str) -> tuple[int, WriterState | None]:
        """The version of the writer's object, and its state; None when it is not registered."""
        snapshot = self.consensus.read(self.key(writer), [HEAD])
        if HEAD not in snapshot.rows:
            return snapshot.version, None
        row = json.loads(snapshot.rows[HEAD])
        return snapshot.version, WriterState.from_row(self.pipeline, writer, snapshot.version, row)

    def register(
        self,
        writer: str,
        shape: Mapping[str, Any],
        position: int = NOTHING_YET,
        target: str | None = None,
        starts: Mapping[str, TopicStart] | None = None,
    ) -> WriterState:
        """Create the writer's state at its first run; raises ``ShapeChanged`` for a registered one of another
        shape.

        ``position`` is where it begins, ``target`` the id of its target, ``starts`` the recreated topics that
        it begins with.
        """

        def attempt(found: tuple[int, WriterState | None]) -> WriterState:
            version, known = found
            if known is not None:
                if known.ended is None:
                    refuse_other_shape(known, shape)
                return known
            # Seed the token from the object's version, so that neither is ever reused: a holder from before
            # the writer was forgotten stays fenced.
            fresh = WriterState(
                self.pipeline,
                writer,
                version,
                position,
                shape,
                token=version,
                reached=position,
                target=target,
                since=position + 1,
                starts=starts or {},
            )
            # Tables that were handed back stay so when the writer is forgotten and registered again.
            if handed_back := handed_back_before(self.deeds(writer), shape.get("keyspace")):
                gate = closing(fresh, Cause.HAND, handed_back)
                fresh = replace(fresh, handed_back=handed_back, gate=gate)
            return self._store(fresh)

        return retry_outpaced(lambda: self.load_version(writer), attempt)

    def handed_back(self, state: WriterState) -> HandedBack | None:
        """The hand-back of the writer's tables to a kafka-journal replicator; None where they are its own.

        An older version recorded a hand-back only as an audit entry, which applies while the gate is closed.
        """
        if state.handed_back or state.gate is None:
            return state.handed_back
        found = handed_back_before(self.deeds(state.name), state.shape.get("keyspace"))
        return found if found and found.at >= state.gate.at else None

    def lend(self, state: WriterState, lease: Lease | None) -> WriterState:
        """Store a new or renewed lease; None releases it."""
        token = max(state.token, lease.token) if lease else state.token
        return self._store(replace(state, lease=lease, token=token))

    def commit(
        self,
        state: WriterState,
        position: int,
        entry: OffsetEntry | None,
        gate: WriterGate | None = None,
        lease: Lease | None = None,
        further: Mapping[str, str] | None = None,
        unfinished: Sequence[str] = (),
    ) -> WriterState:
        """Store position, gate, lease, offset log entry and ``further`` rows atomically; raises ``Outpaced``.

        ``gate`` None opens it, ``lease`` None releases it. Only a rewind may move the position back;
        ``unfinished`` are then the namespaces of which nothing is finished any more.
        """
        is_rewind = entry is not None and entry.kind is OffsetEntryKind.REWIND
        if position < state.position and not is_rewind:
            raise ValueError(
                f"{state.pipeline}/{state.name}: {position} is behind the position {state.position}"
            )
        closed = replace(gate, version=state.version + 1) if gate and gate != state.gate else gate
        reached = max(position, state.reached)
        changed = replace(state, position=position, gate=closed, lease=lease, reached=reached)
        puts = dict(further or {})
        if entry is not None:
            puts[ack_row(state.version + 1)] = json.dumps(asdict(entry), sort_keys=True)
            puts |= {f"ns/{name}": json.dumps(last_id) for name, last_id in entry.namespaces.items()}
        return self._store(changed, puts, [f"ns/{name}" for name in unfinished])

    def acknowledge(
        self,
        state: WriterState,
        ids: Sequence[int],
        by: str,
        lease: Lease | None,
        reason: str | None = None,
        at: int | None = None,
    ) -> WriterState:
        """Record an acknowledgement of these ids in one row, because transactions are bounded."""
        kept = {"ids": list(ids), "by": by, "reason": reason, "at": at}
        # After a rewind, a redelivered message may be acknowledged again.
        obsolete = [_redelivered_row(id_) for id_ in self.redelivered(state.name) if id_ in set(ids)]
        row = {f"{ACKNOWLEDGED}{ids[0]:020d}": json.dumps(kept)}
        return self._store(replace(state, lease=lease), row, obsolete)

    def begin_redelivery(
        self, state: WriterState, id_: int, mark: Mapping[str, Any], lease: Lease | None
    ) -> WriterState:
        """Store the mark by which a retry finds out whether an earlier attempt has written the message."""
        row = {_redelivering_row(id_): json.dumps(dict(mark), sort_keys=True)}
        return self._store(replace(state, lease=lease), row)

    def adopt(
        self, state: WriterState, target: str | None, shape: Mapping[str, Any], lease: Lease | None
    ) -> WriterState:
        """Store the target that the writer continues with."""
        return self._store(replace(state.on_target(target, shape), lease=lease))

    def redelivery_mark(self, writer: str, id_: int) -> Mapping[str, Any] | None:
        """The mark of an unfinished redelivery; None where there is none."""
        row = _redelivering_row(id_)
        found = self.consensus.read(self.key(writer), [row]).rows.get(row)
        mark: Mapping[str, Any] | None = json.loads(found) if found else None
        return mark

    def end_redelivery(
        self, state: WriterState, done: Redelivered, deed: AuditEntry, lease: Lease | None
    ) -> WriterState:
        """Record that an acknowledged message was redelivered, and remove the mark."""
        body = json.dumps(asdict(done), sort_keys=True)
        puts = {_redelivered_row(done.id): body, **self.audit_row(state, deed)}
        return self._store(replace(state, lease=lease), puts, [_redelivering_row(done.id)])

    def end(self, state: WriterState, ended: Ended, deed: AuditEntry) -> WriterState:
        """Make the object of a consumer a tombstone, at the version of ``state``; raises ``Outpaced``.

        What it records stays: its acknowledged ids count for other renditions too.
        """
        tomb = replace(state, ended=ended, gate=None, lease=None, token=state.version + 1)
        puts = {HEAD: json.dumps(tomb.to_row(), sort_keys=True), **self.audit_row(state, deed)}
        version = self.consensus.commit(self.key(state.name), state.version, Change(puts))
        return replace(tomb, version=version)

    def forget(self, state: WriterState, deed: AuditEntry) -> None:
        """Remove a writer's state; its audit entries stay."""
        kept = replace(deed, about=state.shape.get("keyspace"))
        change = Change(self.audit_row(state, kept), ranges=ALL_BUT_AUDIT)
        self.consensus.commit(self.key(state.name), state.version, change)

    def compact(self, state: WriterState, gone: Sequence[RowRange], deed: AuditEntry | None = None) -> int:
        """Remove ranges of the offset log; returns the new version. Raises ``Outpaced``."""
        audit = self.audit_row(state, deed) if deed else {}
        return self.consensus.commit(self.key(state.name), state.version, Change(audit, ranges=gone))

    def audit_row(self, state: WriterState, deed: AuditEntry) -> dict[str, str]:
        """The row of an audit entry, to be committed with the change it is about."""
        return {f"{AUDIT}{state.version + 1:020d}": WRITER_AUDIT.to_json(deed)}

    def acknowledged(self, writer: str) -> frozenset[int]:
        """The acknowledged ids, without those that were redelivered into the regular output."""
        ids = frozenset(id_ for one in self.acknowledgements(writer) for id_ in one.ids)
        if not ids:
            return ids
        return ids - {one.id for one in self.redelivered(writer).values() if one.in_place}

    def unwritten(self, writer: str) -> frozenset[int]:
        """The acknowledged ids, without those that were redelivered in any way."""
        ids = self.acknowledged(writer)
        return ids - self.redelivered(writer).keys() if ids else ids

    def acknowledgements(self, writer: str) -> list[Acknowledgement]:
        """All acknowledgements in id order, including messages that were redelivered later."""
        rows = self._rows(writer, ACKNOWLEDGED).values()
        return [Acknowledgement.from_row(json.loads(body)) for body in rows]

    def redelivered(self, writer: str) -> dict[int, Redelivered]:
        """The acknowledged messages that were redelivered, by id."""
        rows = self._rows(writer, REDELIVERED).values()
        return {one.id: one for one in (Redelivered(**json.loads(body)) for body in rows)}

    def left_out(self, writer: str) -> dict[str, LeftOut]:
        """The recreated topics that the writer leaves out, by name."""
        found = (LeftOut(**json.loads(body)) for body in self._rows(writer, LEFT_OUT).values())
        return {one.topic: one for one in found}

    def namespaces(self, writer: str) -> dict[str, int]:
        """The last finished id of every namespace."""
        rows = self._rows(writer, "ns/")
        return {row.removeprefix("ns/"): json.loads(body) for row, body in rows.items()}

    def history(self, writer: str, limit: int = PAGE) -> list[OffsetEntry]:
        """The newest entries of the offset log, oldest first."""
        rows = self.consensus.scan(self.key(writer), ACK, limit=limit).rows
        return [OffsetEntry.from_row(json.loads(body)) for body in rows.values()]

    def offset_rows(self, writer: str) -> Iterator[tuple[str, str]]:
        """Every row of the offset log, newest first, page by page."""
        for page in self._pages(writer, ACK):
            yield from reversed(list(page.items()))

    def digests(self, writer: str, t: int) -> str | None:
        """The digests that were committed for the binding at ``t``; None where there are none."""
        row = _digest_row(t)
        return self.consensus.read(self.key(writer), [row]).rows.get(row)

    def all_digests(self, writer: str) -> Iterator[str]:
        """The committed digests of all bindings, newest first, page by page."""
        for page in self._pages(writer, DIGEST):
            yield from reversed(list(page.values()))

    def digests_row(self, t: int, digests: str) -> dict[str, str]:
        """The row of a binding's digests, to be committed with the position that finishes the binding."""
        return {_digest_row(t): digests}

    def newest(self, writer: str) -> Newest | None:
        """The newest entry of the offset log, with the state of the same version; None where the log is
        empty."""
        while True:
            last = self.consensus.scan(self.key(writer), ACK, limit=1)
            if not last.rows:
                return None
            ((row, body),) = last.rows.items()
            version, state = self.load_version(writer)
            if state and version == last.version:
                return Newest(state, row, OffsetEntry.from_row(json.loads(body)))

    def holds(self, writer: str, rows: RowRange) -> bool:
        """Whether the offset log has an entry in this range."""
        found = self.consensus.scan(self.key(writer), ACK, before=rows.end, limit=1).rows
        return any(row in rows for row in found)

    def missing_entries(self, writer: str, rows: Sequence[str]) -> list[str]:
        """Those of these rows that are not in the offset log."""
        found = self.consensus.read(self.key(writer), rows).rows
        return [row for row in rows if row not in found]

    def standing(self, writer: str) -> WriterStanding | None:
        """Everything about a writer but its offset log, at one version; None when it is not registered."""
        while state := self.load(writer):
            deeds = tuple(self.deeds(writer))
            found = WriterStanding(state, self.namespaces(writer), self.acknowledged(writer), deeds)
            if self.load_version(writer)[0] == state.version:
                return found
        return None

    def deeds(self, writer: str) -> list[AuditEntry]:
        """The audit entries of operators' actions, oldest first."""
        return [WRITER_AUDIT.from_json(body) for body in self._rows(writer, AUDIT).values()]

    def _rows(self, writer: str, prefix: str) -> dict[str, str]:
        pages = list(self._pages(writer, prefix))
        return {row: body for page in reversed(pages) for row, body in page.items()}

    def _pages(self, writer: str, prefix: str) -> Iterator[Mapping[str, str]]:
        before = None
        while page := self.consensus.scan(self.key(writer), prefix, before=before, limit=PAGE).rows:
            yield page
            before = next(iter(page))

    def _store(
        self, state: WriterState, further: Mapping[str, str] | None = None, gone: Sequence[str] = ()
    ) -> WriterState:
        refuse_ended(state)
        if state.handed_back and state.gate is None:
            raise ValueError(f"{state.pipeline}/{state.name} handed its tables back and may not be open")
        puts = {HEAD: json.dumps(state.to_row(), sort_keys=True), **(further or {})}
        version = self.consensus.commit(self.key(state.name), state.version, Change(puts, gone))
        return replace(state, version=version)

    def key(self, writer: str) -> ObjectKey:
        """The key of a writer's object."""
        return ObjectKey(ObjectKind.WRITER, f"{self.pipeline}/{writer}")


def _digest_row(t: int) -> str:
    return f"{DIGEST}{t:020d}"


def _redelivered_row(id_: int) -> str:
    return f"{REDELIVERED}{id_:020d}"


def _redelivering_row(id_: int) -> str:
    return f"{REDELIVERING}{id_:020d}"
