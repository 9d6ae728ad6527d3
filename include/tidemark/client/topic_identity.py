"""Checks that a topic is still the one that a journal's tables were filled from.

A recreated topic has the same name, another id, and offsets that start again, so the old topic's rows must
not be taken for its beginning. The id is requested from Kafka before each send, and after the mark of each
read. The control plane is read only for an id that was not checked yet. Decides, and does no I/O by itself.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from tidemark.client.errors import TablesUnreadable, TopicRecreated

SENT_WITHIN = 0.05
"""Seconds for which an answer of Kafka's is good enough to send something: a topic cannot be deleted, made
again and be there in less. A read always asks anew."""
ASKED_AGAIN_AFTER = 30.0
"""Seconds after which a control plane that did not answer is tried again before a send."""

UNKNOWN = "unknown"
"""The id of a topic that was bound by a version which kept none."""

events = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """One pipeline's record of a topic."""

    pipeline: str
    bound: str | None
    """The id that it had when it was bound last; None when it is not bound, or not any more."""
    held: str | None = None
    """The id of an earlier topic of that name whose messages the tables have; None when there is none."""


@dataclass(frozen=True, slots=True)
class TopicContradiction:
    """A topic id that differs from the recorded one."""

    pipeline: str | None
    known: str
    is_accepted: bool
    """Whether the loss of the old topic was accepted already."""


Confirm = Callable[[], None]
"""Waits for Kafka's answer; raises ``TopicRecreated`` where the topic is another one."""


class Topics(Protocol):
    """Reads a topic's id from Kafka."""

    def ask(self, key: str) -> Callable[[], str | None]:
        """Begin to ask for the topic's id; what is returned waits for it. None: this Kafka has no ids."""

    def close(self) -> None:
        """Stop."""


class Ledger(Protocol):
    """Reads the recorded ids of a topic from the control plane."""

    def known(self, key: str) -> Sequence[KnownTopic] | None:
        """What the pipelines that fill these tables know of the topic; None when none of it can be known."""


class Guard(Protocol):
    """Refuses a topic other than the one that the tables were filled from."""

    def check(self, key: str) -> None:
        """Checks the topic before a send."""

    def ask(self, key: str) -> Confirm:
        """Starts the check after a read's mark. Call the result before the first event is returned."""

    def close(self) -> None:
        """Stop."""


def contradiction(
    now: str, seen: str | None, known: Sequence[KnownTopic] | None
) -> TopicContradiction | None:
    """What contradicts that the topic of this id is the tables' one; None where nothing does.

    ``seen`` is the id that the same client took for right before: all there is to go by where nothing else is
    known.
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
    """See ``Guard``; shared by all threads of a journal."""

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
        """See ``Guard.check``. An append needs no Cassandra, so its silence is no reason to refuse one."""
        now = self._clock()
        if now - self._confirmed_at < SENT_WITHIN:
            return
        found = self._topics.ask(key)()
        if found in (None, self._right):
            self._confirmed_at = now
        elif self._right is not None:  # another topic than this client has written to: that must be explained
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

        def confirm() -> None:
            if (now := found()) not in (None, self._right):
                self._judge(key, now)

        return confirm

    def _judge(self, key: str, now: str | None) -> None:
        with self._lock:  # threads that begin together are not to ask for the same
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
        return lambda: None

    def close(self) -> None:
        """See ``Guard.close``."""
