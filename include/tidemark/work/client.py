"""``tidemark.Work``: one work journal, for programs that ask for work and programs that do it. Blocks.

At least once: handlers have to bear being run again. Nothing is tried again that the caller did not ask for;
after an error of unknown outcome the same call with the same arguments is safe.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from tidemark.cassandra.session import connect
from tidemark.connections import (
    BadConnection,
    CassandraConnection,
    KafkaConnection,
    read_environment_connection,
)
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
from tidemark.work.queue.dead_letters import dead_letters, redrive, see
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.queue.journal import Claimed, WorkJournal
from tidemark.work.queue.listing import Figures, figures, history, live_entries, next_look
from tidemark.work.queue.packets import checked_key, packet_of
from tidemark.work.store.known_journals import find_declaration
from tidemark.work.store.registry import Pause
from tidemark.work.store.tables import create_journal
from tidemark.work.wake_up import Bell, KafkaBell


class Work:
    """One work journal. Threads may share it; a ``with`` block closes its clients of Kafka.

    Every method raises ``BadRequest`` for what cannot be meant, ``TooBusy`` where others changed the same
    entry again and again, and the driver's errors where Cassandra does not answer. None of them has changed
    anything, but for an answer that was lost: then the same call with the same arguments is safe.
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
        """Open a journal that was created before.

        Args:
            name: The journal's name.
            cassandra: Where it is kept.
            keyspace: In which keyspace.
            kafka: Needed only to wake others, and to be woken, over the topic that the journal declares.
            owner: The name under which this object claims; this machine and process when left out.

        Raises:
            UnknownJournal: There is none of that name in the keyspace.
        """
        parts = open_parts(connect(cassandra), name, keyspace)
        wake = parts.declared.wake
        bell = KafkaBell(name, wake.topic, kafka) if wake and kafka else None
        self._assemble(WorkJournal(parts), bell, owner)

    @classmethod
    def create(
        cls, declared: WorkDeclaration, *, cassandra: CassandraConnection, **options: Any
    ) -> tuple[Self, bool]:
        """Make the journal and its keyspace where they are missing, or give it a changed declaration.

        Without a declared ``replication`` a new keyspace gets three copies where the data centre has three
        nodes or more, else one. A keyspace that is there keeps its own; one copy on three nodes is warned
        about in the log of the process.

        Args:
            declared: The journal.
            cassandra: Where it is to be kept.
            options: ``kafka`` and ``owner``, as of ``Work``.

        Returns:
            The journal, opened, and whether there was anything to do.

        Raises:
            NotTheSameJournal: It exists with another key, bucket or shards, or other payload columns of the
                same version.
        """
        made = create_journal(connect(cassandra), declared)
        return cls(declared.name, cassandra=cassandra, keyspace=declared.keyspace, **options), made

    @classmethod
    def of_file(cls, name: str, *, look_up: Lookup | None = None, owner: str | None = None) -> Self:
        """The journal that a file in ``include/work`` declares, with the connections that it names.

        One that was created without a file is found as well, where the files' journals are kept.

        Args:
            name: The journal's name.
            look_up: Gives a connection by its name; those of the environment (``AIRFLOW_CONN_…``) when left
                out.
            owner: As of ``Work``.

        Raises:
            UnknownJournal: No file declares it, and it was not created without one.
            JournalRefused: Its file cannot be used.
            BadConnection: A connection is not known.
        """
        look_up = look_up or _from_environment
        declared = find_declaration(name, look_up)
        cassandra = CassandraConnection.from_airflow(declared.connection, look_up(declared.connection))
        wake = declared.wake
        kafka = KafkaConnection.from_airflow(wake.connection, look_up(wake.connection)) if wake else None
        return cls(name, cassandra=cassandra, keyspace=declared.keyspace, kafka=kafka, owner=owner)

    @classmethod
    def of_journal(cls, journal: WorkJournal, bell: Bell | None = None, owner: str | None = None) -> Self:
        """The journal of parts that were opened before: for programs of Tidemark itself."""
        made = cls.__new__(cls)
        made._assemble(journal, bell, owner)
        return made

    def _assemble(self, journal: WorkJournal, bell: Bell | None, owner: str | None) -> None:
        parts = journal.parts
        self._parts, self._journal, self._bell = parts, journal, bell
        self._owner = owner or f"{socket.gethostname()}/{os.getpid()}"
        self.declared = parts.declared

    @property
    def name(self) -> str:
        """The journal's name."""
        return self.declared.name

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
        """Ask for something to be done about a key; merged with what is asked for already.

        Args:
            key: The text of a key of one text column, else a mapping of its columns.
            payload: Exactly the declared columns.
            priority: 0 to 255, smallest first; see ``Priority``.
            process: From when on it may be done; left out, as soon as possible. A ``timedelta`` is from now.
            expires: After which it is not wanted any more; left out, never.
            inserted: The sender's date of the request: give the same one to send a request again.

        Returns:
            ``inserted``; ``merged`` with an entry that waits; ``queued`` behind one that is being processed;
            ``unchanged`` where it says nothing new; ``expired`` where its expiry has passed or lies before
            the date from which it may be done: then nothing was stored.

        Raises:
            BadRequest: Key, payload, priority or a date is not as declared.
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
        """Take due entries, smallest priority, then earliest date; each is held from now on.

        Args:
            limit: How many at most, 1 to 1,000.
            owner: The name under which they are held; that of ``Work`` when left out.
            request: A name for this call. Asking again with the same one after an error gives what was in
                doubt, if it was got.

        Returns:
            The claims; fewer where an error came after the first. Empty where nothing is due, and while the
            journal is paused: a call that begins after ``pause`` has returned gets nothing.
        """
        claimed = self._journal.claim(owner or self._owner, limit, request)
        return [WorkItem.of(self.declared, one) for one in claimed]

    def refresh(self, item: Held) -> WorkItem:
        """Begin the time limit of a claim anew.

        Args:
            item: What ``claim`` gave, or a ``Ticket`` of its key and token.

        Returns:
            The claim as it is now.

        Raises:
            ClaimLost: It has ended; ``cause`` says how.
        """
        return WorkItem.of(self.declared, self._journal.refresh(self._claimed(item)))

    def done(self, item: Held) -> Outcome:
        """Say that a claim's work is done.

        Returns:
            ``done``; ``gone`` where there is nothing to be done any more: it was said before, or the entry
            was cancelled or has expired meanwhile.

        Raises:
            ClaimLost: Another claim may have the entry; ``cause`` says what ended this one.
        """
        return self._journal.done(self._claimed(item))

    def fail(self, item: Held, error: str) -> Outcome:
        """Say that a claim's work could not be done.

        Args:
            item: The claim.
            error: Why; kept with the entry, the first 4,000 characters.

        Returns:
            ``failed``: it comes back after its back-off; ``dead``: it was given up and is a dead letter.

        Raises:
            ClaimLost: See ``refresh``.
        """
        return self._journal.fail(self._claimed(item), error)

    def snooze(self, item: Held, until: Moment | timedelta) -> Outcome:
        """Give a claim back until later; counts as no failure.

        Args:
            item: The claim.
            until: From when on it may be claimed again; a ``timedelta`` is from now.

        Returns:
            ``snoozed``.

        Raises:
            ClaimLost: See ``refresh``.
        """
        moment = milliseconds_of(self.name, "until", until, self._parts.clock())
        if not isinstance(moment, int):
            raise BadRequest(self.name, "`until` is missing")
        return self._journal.snooze(self._claimed(item), moment)

    def release(self, item: Held) -> Outcome:
        """Give a claim back as it was: it may be claimed again at once.

        Returns:
            ``released``.

        Raises:
            ClaimLost: See ``refresh``.
        """
        return self._journal.release(self._claimed(item))

    def cancel(self, key: Any, *, who: str = "", reason: str = "") -> Outcome:
        """Forget a key with everything that is asked for; a claim of it is lost.

        Args:
            key: As of ``insert``.
            who: The person who wants it, for ``deeds``.
            reason: Why; without one nothing is kept in ``deeds``.

        Returns:
            ``cancelled``; ``gone`` where there was no entry, ``expired`` where it had expired: nothing was
            cancelled then, and nothing is kept in ``deeds``.
        """
        text = checked_key(self.declared, key)
        outcome = self._journal.cancel(text)
        if reason and outcome is Outcome.CANCELLED:
            self._parts.registry.note(AuditEntry(f"cancel {text}", who, reason, self._parts.clock()))
        return outcome

    def get(self, key: Any) -> WorkEntry | None:
        """The live entry of a key; None if there is none, or it has expired."""
        entry = self._journal.get(checked_key(self.declared, key))
        return None if entry is None else WorkEntry.of_entry(self.declared, entry)

    def entries(self) -> Iterator[WorkEntry]:
        """Every live entry, smallest priority first; read while it is asked for, one by one."""
        now = self._parts.clock()
        for entry in live_entries(self._parts, self._parts.registry.read(), now):
            yield WorkEntry.of_entry(self.declared, entry)

    def stats(self) -> Figures:
        """The journal in numbers; costs as much as there are entries. Times are ms since 1970."""
        return figures(self._parts, self._parts.clock())

    def copies_warning(self) -> str | None:
        """What is wrong with how many copies the keyspace has on its cluster; None if nothing is."""
        return self._parts.copies_warning()

    def dead(self, *, unseen: bool = False) -> Iterator[WorkEntry]:
        """The dead letters that were not put back, newest first.

        Args:
            unseen: Only those that no person has looked at: see ``mark_seen``.
        """
        for kept in dead_letters(self._parts, self._parts.clock()):
            if kept.seen is None or not unseen:
                yield WorkEntry.of_letter(self.declared, kept)

    def mark_seen(self, letter: WorkEntry, *, who: str, reason: str) -> None:
        """Note that a person has looked at a dead letter: ``work.sweep`` reports it no longer.

        It stays a dead letter, and may be put back later.

        Args:
            letter: One of ``dead``.
            who: The person.
            reason: What they say about it.

        Raises:
            BadRequest: It is no dead letter of this journal, or ``who`` or ``reason`` is empty.
            OldTables: The keyspace was made by an earlier version; ``tidemark work create`` mends that.
        """
        kept = self._letter(letter)
        for name, text in (("who", who), ("reason", reason)):
            if not isinstance(text, str) or not text.strip():
                raise BadRequest(self.name, f"`{name}` is missing: say who looked at it, and what they found")
        see(self._parts, kept.letter, Seen(who, self._parts.clock(), reason))

    def is_ready(self) -> bool:
        """Whether a claim would get something; takes nothing. False while the journal is paused."""
        registered = self._parts.registry.read()
        return registered.paused is None and self._journal.is_due(registered)

    def redrive(self, letter: WorkEntry, *, who: str = "", reason: str = "") -> Outcome:
        """Put a dead letter back, to be done as soon as possible.

        Args:
            letter: One of ``dead``.
            who: The person who wants it, for ``deeds``.
            reason: Why; without one nothing is kept in ``deeds``.

        Returns:
            As ``insert``. What was asked for since is newer, and keeps its payload.
        """
        kept = self._letter(letter)
        outcome = redrive(self._journal, kept.letter)
        if reason:
            self._parts.registry.note(
                AuditEntry(f"redrive {kept.letter.key}", who, reason, self._parts.clock())
            )
        return outcome

    def history(self, days: int = 7) -> Iterator[WorkEntry]:
        """The claims of the last days that have ended, newest first; empty unless the journal keeps them.

        Args:
            days: How many days before today; 0 is today.
        """
        if not isinstance(days, int) or days < 0:
            raise BadRequest(self.name, f"`days` is {days!r}, but must be a whole number from 0 on")
        ended = history(self._parts, self._parts.clock(), days)
        return (WorkEntry.of_run(self.declared, run) for run in ended)

    def deeds(self) -> list[AuditEntry]:
        """The twenty newest things that people did to the journal by hand, newest first."""
        return self._parts.registry.deeds()

    def pause(self, who: str, reason: str) -> None:
        """Give nothing out until ``resume``; inserts and running work go on.

        No claim that begins after this has returned gets anything, in whichever process. Claims that were
        made, or had begun, before are not ended.

        Args:
            who: The person who wants it.
            reason: Why; ``stats`` shows it.
        """
        now = self._parts.clock()
        self._parts.registry.note(AuditEntry("pause", who, reason, now))
        self._parts.registry.pause(Pause(who, reason, now))

    def resume(self, who: str, reason: str) -> None:
        """Give out again, also to claims that wait: those that ``wake`` reaches at once.

        Args:
            who: The person who wants it.
            reason: Why.
        """
        self._parts.registry.note(AuditEntry("resume", who, reason, self._parts.clock()))
        self._parts.registry.pause(None)
        if self._bell is not None:
            self._bell.ring("")

    def wait(self, seconds: float = LONGEST_WAIT, sleep: Callable[[float], None] = time.sleep) -> None:
        """Return when something may be due: at once while something is.

        Otherwise at the next date of an entry, when an insert wakes it (``wake``), or after ``seconds``. A
        paused journal is looked at every five seconds, whatever is due.

        Args:
            seconds: How long at most; never more than five minutes.
            sleep: Passes the time where nothing can wake this process.
        """
        registered = self._parts.registry.read()
        if registered.paused is None:
            # An insert between the first look and the first listening wakes no listener: hence the second.
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

    @property
    def parts(self) -> Parts:
        """Where it is kept: for what sweeps it."""
        return self._parts

    def close(self) -> None:
        """Close the clients of Kafka; sessions with Cassandra are the process's and stay."""
        if self._bell is not None:
            self._bell.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _from_environment(name: str) -> Mapping[str, Any]:
    if found := read_environment_connection(name, os.environ):
        return found
    raise BadConnection(
        name, f"is not known here. Set AIRFLOW_CONN_{name.upper()}, or give `look_up` a function."
    )
