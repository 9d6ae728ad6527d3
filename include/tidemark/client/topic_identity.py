"""Checks that a topic is still the one that a journal's tables were filled from.

A recreated topic has the same name, another id, and offsets that start at 0 again. Its readers must not get
the old topic's rows. The id is requested from Kafka before each send, and after the mark of each read. The
control plane is read only for an id that was not checked yet. All I/O is done by ``Topics`` and ``Ledger``.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from tidemark.client.errors import TablesUnreadable, TopicRecreated

SENT_WITHIN = 0.05
"""Seconds for which a checked id is reused before a send: recreating a topic takes longer. Reads never reuse
one."""
ASKED_AGAIN_AFTER = 30.0
"""Seconds after which sends read the control plane again, where it did not answer."""

UNKNOWN = "unknown"
"""The id of a topic that was bound by a version that stored no ids."""

events = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """One pipeline's record of a topic."""

    pipeline: str
    bound: str | None
    """The id at the last binding; None where the topic is not bound, or no longer."""
    held: str | None = None
    """The id of an earlier topic of that name whose events the tables have; None without one."""


@dataclass(frozen=True, slots=True)
class TopicContradiction:
    """A topic id that differs from the recorded one."""

    pipeline: str | None
    """The pipeline with the record; None where the id differs from one that this client saw before."""
    known: str
    """The recorded id, or ``UNKNOWN``."""
    is_accepted: bool
    """Whether the loss of the old topic was accepted."""


Confirm = Callable[[], str | None]
"""Waits for Kafka's answer. Returns the topic's id, or None where this Kafka has no ids. Raises
``TopicRecreated`` where the topic was recreated."""


class Topics(Protocol):
    """Reads a topic's id from Kafka."""

    def ask(self, key: str) -> Callable[[], str | None]:
        """Requests the topic's id. The result waits for it; None where this Kafka has no ids."""

    def close(self) -> None:
        """Closes the Kafka client."""


class Ledger(Protocol):
    """Reads the recorded ids of a topic from the control plane."""

    def known(self, key: str) -> Sequence[KnownTopic] | None:
        """The records of the pipelines that fill the tables; None without a readable control plane."""


class Guard(Protocol):
    """Refuses a topic other than the one that the tables were filled from."""

    def check(self, key: str) -> None:
        """Checks the topic before a send. Raises ``TopicRecreated``."""

    def ask(self, key: str) -> Confirm:
        """Starts the check after a read's mark. Call the result before the first event is returned."""

    def close(self) -> None:
        """Closes the Kafka client."""


def contradiction(
    now: str, seen: str | None, known: Sequence[KnownTopic] | None
) -> TopicContradiction | None:
    """The recorded id that differs from the topic's present id ``now``; None where none differs.

    ``seen`` is the id that this client checked before; it is compared only where ``known`` is None.
    """
    if known is None:
        return None if seen in (None, now) else TopicContradiction(None, seen or UNKNOWN, is_accepted=False)
    for one in known:
        if one.bound not in (None, now):
            return TopicContradiction(one.pipeline, one.bound or UNKNOWN, is_accepted=False)
    for one in known:
        if one.held not in (None, now):
            return TopicContradiction(one.pipeline, one.held or UNKNOWN, is_accepted=True)
    return None


class TopicGuard:
    """``Guard`` on ``Topics`` and ``Ledger``. Threads may share it."""

    def __init__(
        self,
        topic: str,
        keyspace: str,
        topics: Topics,
        ledger: Ledger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic, self._keyspace, self._topics, self._ledger = topic, keyspace, topics, ledger
        self._clock = clock
        self._lock = threading.Lock()
        self._right: str | None = None
        """The last id that passed the check."""
        self._confirmed_at = self._unanswered_at = -float("inf")

    def check(self, key: str) -> None:
        """See ``Guard.check``. Sends while Cassandra does not answer, as long as no id was checked before."""
        now = self._clock()
        if now - self._confirmed_at < SENT_WITHIN:
            return
        found = self._topics.ask(key)()
        if found in (None, self._right):
            self._confirmed_at = now
        elif self._right is not None:  # the id changed: only the control plane can confirm it
            self._judge(key, found)
            self._confirmed_at = now
        elif now - self._unanswered_at >= ASKED_AGAIN_AFTER:
            try:
                self._judge(key, found)
                self._confirmed_at = now
            except TablesUnreadable as error:
                self._unanswered_at = now
                events.warning(
                    "sent although the topic's id could not be compared with the one that was bound",
                    topic=self._topic,
                    topic_id=found,
                    reason=error.reason,
                )

    def ask(self, key: str) -> Confirm:
        """See ``Guard.ask``."""
        found = self._topics.ask(key)

        def confirm() -> str | None:
            if (now := found()) not in (None, self._right):
                self._judge(key, now)
            return now

        return confirm

    def _judge(self, key: str, now: str | None) -> None:
        with self._lock:  # concurrent threads read the control plane once
            if now is None or now == self._right:
                return
            found = contradiction(now, self._right, self._ledger.known(key))
            if found is not None:
                raise TopicRecreated(
                    self._topic,
                    key,
                    self._keyspace,
                    found.pipeline,
                    found.known,
                    now,
                    is_accepted=found.is_accepted,
                )
            self._right = now

    def close(self) -> None:
        """See ``Guard.close``."""
        self._topics.close()


class Unguarded:
    """A guard that checks nothing, for a journal whose topic cannot have been recreated."""

    def check(self, key: str) -> None:
        """See ``Guard.check``."""

    def ask(self, key: str) -> Confirm:
        """See ``Guard.ask``."""
        return lambda: UNKNOWN

    def close(self) -> None:
        """See ``Guard.close``."""
