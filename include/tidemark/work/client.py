"""``tidemark.Work``: one work journal, for programs that insert work and programs that process it. Blocks.

Delivery is at-least-once: handlers must be idempotent. No call is retried on its own. After an error of
unknown outcome, the caller can safely repeat the call with the same arguments.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection, KafkaConnection, look_up_environment
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.pipeline.connections import Lookup
from tidemark.work.claimed_item import Held, Moment, WorkItem, milliseconds_of
from tidemark.work.errors import BadRequest
from tidemark.work.model.decision import Outcome
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import KeptLetter, Priority, Seen
from tidemark.work.model.entry_view import WorkEntry
from tidemark.work.model.waiting import LONGEST_WAIT, seconds_to_wait
from tidemark.work.open_journal import open_parts
from tidemark.work.queue.dead_letters import redrive, see
from tidemark.work.queue.journal import Claimed, WorkJournal
from tidemark.work.queue.listing import next_look
from tidemark.work.queue.packets import checked_key, packet_of
from tidemark.work.store.known_journals import find_declaration
from tidemark.work.store.registry import Pause
from tidemark.work.store.tables import create_journal
from tidemark.work.wake_up import Bell, KafkaBell
from tidemark.work.work_view import WorkView


class Work(WorkView):
    """One work journal. Threads may share it; a ``with`` block closes its Kafka clients.

    Every method may raise ``BadRequest`` for invalid arguments, ``TooBusy`` where other processes kept
    changing the same entry, and the driver's errors where Cassandra does not answer. Such a call has changed
    nothing, unless only Cassandra's answer was lost: then it is safe to repeat it with the same arguments.
    """

    def __init__(
        self,
        name: str,
        *,
        cassandra: CassandraConnection,
        keyspace: str = "work",
        kafka: KafkaConnection | None = None,
        owner: str | None = None,
    ) -> None:
        """Opens a journal that was created before.

        Args:
            name: The journal's name.
            cassandra: The cluster that holds the journal.
            keyspace: The journal's keyspace.
            kafka: The Kafka cluster of the journal's ``wake`` topic. Without it this object neither wakes
                other processes nor is woken by them.
            owner: The name that claims of this object carry; None: host name and process id.

        Raises:
            UnknownJournal: The keyspace has no journal of that name.
        """
        parts = open_parts(connect(cassandra), name, keyspace)
        wake = parts.declared.wake
        bell = KafkaBell(name, wake.topic, kafka) if wake and kafka else None
        self._assemble(WorkJournal(parts), bell, owner)

    @classmethod
    def create(
        cls, declared: WorkDeclaration, *, cassandra: CassandraConnection, **options: Any
    ) -> tuple[Self, bool]:
        """Creates the journal and its keyspace where they are missing, or stores its changed declaration.

        Without a declared ``replication``, a new keyspace gets three copies in a data centre of three or more
        nodes, else one. An existing keyspace is not altered. One copy on three or more nodes is logged as a
        warning.

        Args:
            declared: The journal's declaration.
            cassandra: The cluster that is to hold the journal.
            options: ``kafka`` and ``owner``, as for ``Work``.

        Returns:
            The opened journal, and whether anything was created or changed.

        Raises:
            NotTheSameJournal: The journal exists with another key, bucket or number of shards, or with other
                payload columns of the same version.
        """
        is_changed = create_journal(connect(cassandra), declared)
        return cls(declared.name, cassandra=cassandra, keyspace=declared.keyspace, **options), is_changed

    @classmethod
    def of_file(cls, name: str, *, look_up: Lookup | None = None, owner: str | None = None) -> Self:
        """Opens the journal that a file in ``include/work`` declares, with the connections that it names.

        A journal that was created without a file is found too, in the keyspaces that the files name.

        Args:
            name: The journal's name.
            look_up: Returns a connection's fields by its name; None: the variables ``AIRFLOW_CONN_…``.
            owner: See ``Work``.

        Returns:
            The opened journal.

        Raises:
            UnknownJournal: No file declares it, and no known keyspace has it.
            JournalRefused: Its file is not valid.
            BadConnection: A connection is unknown or incomplete.
        """
        look_up = look_up or look_up_environment
        declared = find_declaration(name, look_up)
        cassandra = CassandraConnection.from_airflow(declared.connection, look_up(declared.connection))
        wake = declared.wake
        kafka = KafkaConnection.from_airflow(wake.connection, look_up(wake.connection)) if wake else None
        return cls(name, cassandra=cassandra, keyspace=declared.keyspace, kafka=kafka, owner=owner)

    @classmethod
    def of_journal(cls, journal: WorkJournal, bell: Bell | None = None, owner: str | None = None) -> Self:
        """Uses a journal that Tidemark's own code has opened.

        Args:
            journal: The opened journal.
            bell: Wakes waiting processes; None where the journal has no ``wake`` topic.
            owner: See ``Work``.

        Returns:
            The journal.
        """
        made = cls.__new__(cls)
        made._assemble(journal, bell, owner)
        return made

    def _assemble(self, journal: WorkJournal, bell: Bell | None, owner: str | None) -> None:
        WorkView.__init__(self, journal)
        self._bell = bell
        self._owner = owner or f"{socket.gethostname()}/{os.getpid()}"

    def insert(
        self,
        key: Any,
        payload: Mapping[str, Any],
        *,
        priority: int = Priority.UPDATES,
        process: Moment | timedelta | None = None,
        expires: Moment | timedelta | None = None,
        inserted: Moment | None = None,
    ) -> Outcome:
        """Requests work for a key. A request for a key that has an entry is merged with it.

        Args:
            key: The text of a key of one text column, else a mapping of its columns.
            payload: A value for each of the declared columns, and for no other.
            priority: 0 to 255, smallest first; ``Priority`` has names for some.
            process: The earliest time at which it may be claimed; a ``timedelta`` counts from now; None: now.
            expires: The time after which it is deleted unprocessed; a ``timedelta`` counts from now; None:
                never.
            inserted: The sender's time of the request; None: now. Repeat the same time to make a retry
                idempotent.

        Returns:
            ``inserted``: a new entry. ``merged``: with an entry that waits. ``queued``: behind an entry that
            is being processed. ``unchanged``: the request adds nothing. ``expired``: its expiry has passed or
            comes before ``process``; nothing was stored.

        Raises:
            BadRequest: Key, payload, priority or a time is not valid.
            PayloadTooLarge: The payload is larger than ``payload_limit``.
        """
        now = self._parts.clock()
        packet = packet_of(
            self.declared,
            key,
            payload,
            now=now,
            priority=priority,
            process=milliseconds_of(self.name, "process", process, now),
            expires=milliseconds_of(self.name, "expires", expires, now),
            inserted=milliseconds_of(self.name, "inserted", inserted, now),
        )
        outcome = self._journal.insert(packet).outcome
        if self._bell is not None:
            self._bell.ring(packet.key)
        return outcome

    def claim(
        self, limit: int = 1, *, owner: str | None = None, request: str | None = None
    ) -> list[WorkItem]:
        """Claims due entries, smallest priority first, then earliest time. Each claim is a lease.

        Args:
            limit: The most entries to claim, 1 to 1,000.
            owner: The name that the claims carry; None: that of this object.
            request: An idempotency key for this call, 1 to 200 characters; None: a random one. A retry with
                the same key returns the claims that the failed call made.

        Returns:
            The claims; fewer than are due where an error came after the first. Empty where nothing is due, or
            the journal was paused before the call began.

        Raises:
            BadRequest: An argument is not valid.
        """
        claimed = self._journal.claim(owner or self._owner, limit, request)
        return [WorkItem.of(self.declared, one) for one in claimed]

    def refresh(self, item: Held) -> WorkItem:
        """Renews a claim: its time limit starts again.

        Args:
            item: A claim returned by ``claim``, or a ``Ticket`` with its key and token.

        Returns:
            The renewed claim.

        Raises:
            ClaimLost: The claim has ended; ``cause`` says how.
        """
        return WorkItem.of(self.declared, self._journal.refresh(self._claimed(item)))

    def done(self, item: Held) -> Outcome:
        """Ends a claim because its work is done, and removes the entry. Idempotent.

        Args:
            item: The claim, as for ``refresh``.

        Returns:
            ``done``; ``gone`` where there was nothing left to end: the same claim was ended as done before,
            or the entry was cancelled or has expired.

        Raises:
            ClaimLost: The claim had ended, and another one may hold the entry; ``cause`` says how it ended.
        """
        return self._journal.done(self._claimed(item))

    def fail(self, item: Held, error: str) -> Outcome:
        """Ends a claim because its work failed. The entry is retried after its backoff.

        Args:
            item: The claim, as for ``refresh``.
            error: The reason. Its first 4,000 characters are stored with the entry.

        Returns:
            ``failed``; ``dead`` where ``max_failures`` was reached and the entry is a dead letter now.

        Raises:
            ClaimLost: See ``refresh``.
            BadRequest: ``error`` is not text.
        """
        return self._journal.fail(self._claimed(item), error)

    def snooze(self, item: Held, until: Moment | timedelta) -> Outcome:
        """Ends a claim and postpones the entry. Does not count as a failure.

        Args:
            item: The claim, as for ``refresh``.
            until: The earliest time of the next claim; a ``timedelta`` counts from now.

        Returns:
            ``snoozed``.

        Raises:
            ClaimLost: See ``refresh``.
            BadRequest: ``until`` is not a time, or over ten years ahead.
        """
        moment = milliseconds_of(self.name, "until", until, self._parts.clock())
        if not isinstance(moment, int):
            raise BadRequest(self.name, "`until` is missing")
        return self._journal.snooze(self._claimed(item), moment)

    def release(self, item: Held) -> Outcome:
        """Ends a claim without a result: the entry may be claimed again at once.

        Args:
            item: The claim, as for ``refresh``.

        Returns:
            ``released``.

        Raises:
            ClaimLost: See ``refresh``.
        """
        return self._journal.release(self._claimed(item))

    def cancel(self, key: Any, *, who: str = "", reason: str = "") -> Outcome:
        """Removes a key's entry and the request queued behind it. A claim of the entry is lost.

        Args:
            key: The key, as for ``insert``.
            who: The operator, for the audit trail (``deeds``).
            reason: The operator's reason. An empty one leaves the call out of the audit trail.

        Returns:
            ``cancelled``; ``gone`` where there was no entry, ``expired`` where it had expired. The last two
            change nothing and are not in the audit trail.

        Raises:
            BadRequest: The key is not as declared.
        """
        text = checked_key(self.declared, key)
        outcome = self._journal.cancel(text)
        if outcome is Outcome.CANCELLED:
            self._note(f"cancel {text}", who, reason)
        return outcome

    def mark_seen(self, letter: WorkEntry, *, who: str, reason: str) -> None:
        """Marks a dead letter as seen by an operator: ``work.sweep`` does not report it again.

        It stays a dead letter, and can be redriven later.

        Args:
            letter: A dead letter returned by ``dead``.
            who: The operator.
            reason: The operator's remark.

        Raises:
            BadRequest: ``letter`` is not a dead letter of this journal, or ``who`` or ``reason`` is empty.
            OldTables: The keyspace was created by an earlier version; ``tidemark work create`` adds the
                missing column.
        """
        kept = self._letter(letter)
        for name, text in (("who", who), ("reason", reason)):
            if not isinstance(text, str) or not text.strip():
                raise BadRequest(self.name, f"`{name}` is missing: say who looked at it, and what they found")
        see(self._parts, kept.letter, Seen(who, self._parts.clock(), reason))

    def redrive(self, letter: WorkEntry, *, who: str = "", reason: str = "") -> Outcome:
        """Inserts a dead letter's request again, due now.

        Args:
            letter: A dead letter returned by ``dead``.
            who: As for ``cancel``.
            reason: As for ``cancel``.

        Returns:
            The outcome of ``insert``. Where the key has a newer entry, that entry keeps its payload.

        Raises:
            BadRequest: ``letter`` is not a dead letter of this journal.
        """
        kept = self._letter(letter)
        outcome = redrive(self._journal, kept.letter)
        self._note(f"redrive {kept.letter.key}", who, reason)
        return outcome

    def pause(self, who: str, reason: str) -> None:
        """Stops claims until ``resume``. Inserts and running work go on.

        No claim that begins after this call has returned gets an entry, in any process. Claims made before
        are kept.

        Args:
            who: The operator.
            reason: The operator's reason; ``stats`` shows it.
        """
        now = self._parts.clock()
        self._parts.registry.note(AuditEntry("pause", who, reason, now))
        self._parts.registry.pause(Pause(who, reason, now))

    def resume(self, who: str, reason: str) -> None:
        """Ends a pause, and wakes processes that wait on the journal's ``wake`` topic.

        Args:
            who: The operator.
            reason: The operator's reason.
        """
        self._parts.registry.note(AuditEntry("resume", who, reason, self._parts.clock()))
        self._parts.registry.pause(None)
        if self._bell is not None:
            self._bell.ring("")

    def wait(self, seconds: float = LONGEST_WAIT, sleep: Callable[[float], None] = time.sleep) -> None:
        """Blocks until an entry may be due; returns at once while one is due.

        It also returns when an insert wakes it (``wake``), and after ``seconds``. While the journal is paused
        it returns every five seconds.

        Args:
            seconds: The timeout; at most five minutes are waited.
            sleep: Waits where the journal has no ``wake`` topic; tests replace it.
        """
        registered = self._parts.registry.read()
        if registered.paused is None:
            # An insert between the first check and the start of listening wakes no listener: check twice.
            is_new_listener = False
            if self._journal.is_due(registered):
                return
            if self._bell is not None:
                is_new_listener = self._bell.listen(seconds)
            if is_new_listener and self._journal.is_due(registered := self._parts.registry.read()):
                return
        now = self._parts.clock()
        left = seconds_to_wait(
            seconds,
            now,
            [next_look(self._parts, registered, now), self._journal.next_again],
            is_paused=registered.paused is not None,
            is_busy=self._journal.is_busy,
        )
        if self._bell is None:
            sleep(left)
        else:
            self._bell.wait(left)

    def _note(self, action: str, who: str, reason: str) -> None:
        if reason:
            self._parts.registry.note(AuditEntry(action, who, reason, self._parts.clock()))

    def _letter(self, letter: WorkEntry) -> KeptLetter:
        if isinstance(letter, WorkEntry) and isinstance(letter.source, KeptLetter):
            if letter.journal == self.name:
                return letter.source
            raise BadRequest(self.name, f"the dead letter is one of {letter.journal}")
        raise BadRequest(self.name, "this is no dead letter. Give one that `dead()` gave")

    def _claimed(self, item: Held) -> Claimed:
        if isinstance(item, WorkItem):
            return item.claimed
        return self._journal.held(checked_key(self.declared, item.key), item.token)

    def close(self) -> None:
        """Closes the Kafka clients. Cassandra sessions are shared by the process and stay open."""
        if self._bell is not None:
            self._bell.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
