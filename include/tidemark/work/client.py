"""``tidemark.Work``: one work journal, for those who ask for work and for those who do it. Blocks.

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
from tidemark.delivery.addresses import Lookup
from tidemark.work import tables
from tidemark.work.changing import Parts
from tidemark.work.decision import Outcome
from tidemark.work.declaration import WorkDeclaration
from tidemark.work.entry import DeadLetter, Priority, Run
from tidemark.work.errors import BadRequest
from tidemark.work.items import Held, Moment, WorkItem, entry_fields, milliseconds_of
from tidemark.work.journal import Claimed, WorkJournal
from tidemark.work.known import find_declaration
from tidemark.work.listing import Figures, dead_letters, figures, first_due, history, live_entries, next_look
from tidemark.work.opened import open_parts
from tidemark.work.packets import checked_key, packet_of
from tidemark.work.redriving import redrive
from tidemark.work.registry import Deed, Pause, Registry
from tidemark.work.waking import Bell, KafkaBell

LONGEST_WAIT = 300.0
"""Seconds after which whoever waits looks at the journal, told to or not."""


class Work:
    """One work journal. Threads may share it."""

    def __init__(
        self,
        name: str,
        *,
        cassandra: CassandraConnection,
        keyspace: str = "work",
        kafka: KafkaConnection | None = None,
        owner: str | None = None,
    ) -> None:
        """Open a journal that was created before; raises ``UnknownJournal``.

        ``kafka`` is needed only to wake others, and to be woken, over the topic that the journal declares.
        ``owner`` is who claims; this machine and process when left out.
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

        The second value says whether there was anything to do.
        """
        session = connect(cassandra)
        copies = {name: str(count) for name, count in declared.replication.factors.items()}
        replication = {"class": declared.replication.strategy.value, **copies}
        tables.create_tables(session, replication, declared.keyspace)
        registry = Registry(tables.registry_consensus(session, declared.keyspace), declared.name)
        made = registry.create(declared)
        return cls(declared.name, cassandra=cassandra, keyspace=declared.keyspace, **options), made

    @classmethod
    def of_file(cls, name: str, *, look_up: Lookup | None = None, owner: str | None = None) -> Self:
        """The journal that a file in ``include/work`` declares, with the connections that it names.

        One that was created without a file is found as well, where the files' journals are kept.
        """
        look_up = look_up or _from_environment
        declared = find_declaration(name, look_up)
        cassandra = CassandraConnection.from_airflow(declared.connection, look_up(declared.connection))
        wake = declared.wake
        kafka = KafkaConnection.from_airflow(wake.connection, look_up(wake.connection)) if wake else None
        return cls(name, cassandra=cassandra, keyspace=declared.keyspace, kafka=kafka, owner=owner)

    @classmethod
    def of_journal(cls, journal: WorkJournal, bell: Bell | None = None, owner: str | None = None) -> Self:
        """The journal that is kept there."""
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

        ``process`` left out is as soon as possible, ``expires`` left out never; a ``timedelta`` is from now.
        ``inserted`` is the sender's date of the request: give the same one to send a request again.
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
        """Up to ``limit`` due entries in their order, each held from now on; an empty list if there is none.

        After an error, asking again with the same ``request`` gives what was in doubt, if it was got.
        """
        claimed = self._journal.claim(owner or self._owner, limit, request)
        return [WorkItem.of(self.declared, one) for one in claimed]

    def refresh(self, item: Held) -> WorkItem:
        """Begin the time limit anew; raises ``ClaimLost``."""
        return WorkItem.of(self.declared, self._journal.refresh(self._claimed(item)))

    def done(self, item: Held) -> Outcome:
        """Say that it is done; saying so twice is a success without effect. Raises ``ClaimLost``."""
        return self._journal.done(self._claimed(item))

    def fail(self, item: Held, error: str) -> Outcome:
        """Say that it could not be done, and why: it comes back later, or becomes a dead letter."""
        return self._journal.fail(self._claimed(item), error)

    def snooze(self, item: Held, until: Moment | timedelta) -> Outcome:
        """Give it back until later; counts as no failure."""
        moment = milliseconds_of(self.name, "until", until, self._parts.clock())
        if not isinstance(moment, int):
            raise BadRequest(self.name, "`until` is missing")
        return self._journal.snooze(self._claimed(item), moment)

    def release(self, item: Held) -> Outcome:
        """Give it back as it was."""
        return self._journal.release(self._claimed(item))

    def cancel(self, key: Any, *, who: str = "", reason: str = "") -> Outcome:
        """Forget a key with everything that is asked for; who processes it has lost the claim."""
        text = checked_key(self.declared, key)
        outcome = self._journal.cancel(text)
        if reason:
            self._parts.registry.note(Deed(f"cancel {text}", who, reason, self._parts.clock()))
        return outcome

    def get(self, key: Any) -> dict[str, Any] | None:
        """The live entry of a key."""
        entry = self._journal.get(checked_key(self.declared, key))
        return None if entry is None else entry_fields(self.declared, entry)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every live entry, smallest priority first."""
        now = self._parts.clock()
        for entry in live_entries(self._parts, self._parts.registry.read(), now):
            yield entry_fields(self.declared, entry)

    def stats(self) -> Figures:
        """The journal in numbers."""
        return figures(self._parts, self._parts.clock())

    def dead(self) -> Iterator[DeadLetter]:
        """Its dead letters, newest first."""
        return dead_letters(self._parts, self._parts.clock())

    def is_ready(self) -> bool:
        """Whether a claim would get something; takes nothing."""
        registered = self._parts.registry.read()
        if registered.paused is not None:
            return False
        return first_due(self._parts, registered, self._parts.clock()) is not None

    def redrive(self, letter: DeadLetter, *, who: str = "", reason: str = "") -> Outcome:
        """Put a dead letter back, to be done as soon as possible."""
        outcome = redrive(self._journal, letter)
        if reason:
            self._parts.registry.note(Deed(f"redrive {letter.key}", who, reason, self._parts.clock()))
        return outcome

    def history(self, days: int = 7) -> Iterator[Run]:
        """The claims of the last days that have ended, newest first; empty unless the journal keeps them."""
        if not isinstance(days, int) or days < 0:
            raise BadRequest(self.name, f"`days` is {days!r}, but must be a whole number from 0 on")
        return history(self._parts, self._parts.clock(), days)

    def deeds(self) -> list[Deed]:
        """What people did to the journal by hand, newest first."""
        return self._parts.registry.deeds()

    def pause(self, who: str, reason: str) -> None:
        """Give nothing out until it is resumed; everything else goes on."""
        now = self._parts.clock()
        self._parts.registry.note(Deed("pause", who, reason, now))
        self._parts.registry.pause(Pause(who, reason, now))

    def resume(self, who: str, reason: str) -> None:
        """Give out again."""
        self._parts.registry.note(Deed("resume", who, reason, self._parts.clock()))
        self._parts.registry.pause(None)

    def wait(self, seconds: float = LONGEST_WAIT, sleep: Callable[[float], None] = time.sleep) -> None:
        """Until something may be due: the next date, a message that something was inserted, or so long."""
        now = self._parts.clock()
        look = next_look(self._parts, self._parts.registry.read(), now)
        until = LONGEST_WAIT if look is None else (look - now) / 1000
        left = max(0.0, min(seconds, until, LONGEST_WAIT))
        if self._bell is None:
            sleep(left)
        else:
            self._bell.wait(left)

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
