"""What the control plane knows of a topic, for readers and senders. Read-only.

A pipeline's bindings keep the id that a topic had when it was bound last. When the loss of a topic that was
made again is accepted, that id is another one from then on, or none; the tables still have the old topic's
messages where their pointers were made before. A journal that names no pipeline goes by the writers that fill
its keyspace. Where the control plane is not to be found, or not for this user, nothing is known.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidemark.cassandra.driver import InvalidRequest, Unauthorized
from tidemark.cassandra.session import CassandraUnreachable, connect
from tidemark.client.errors import TablesUnreadable
from tidemark.client.topic_identity import UNKNOWN, KnownTopic
from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import FAILURES, KEYSPACE, LightweightConsensus
from tidemark.consensus.objects import Consensus, ObjectKind
from tidemark.delivery.state.positions import Positions
from tidemark.log.model.recreated_topics import of_whole_topics
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration

FirstPointed = Callable[[Collection[int]], int | None]
"""``Pointers.first_pointed``, of one topic."""


class Pointers(Protocol):
    """The pointers of a journal's tables."""

    def first_pointed(self, key: str, partitions: Collection[int]) -> int | None:
        """When the first pointer of these partitions was made, in µs; None where there is none."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane's cluster, and the pipeline that replicates the journal."""

    connection: CassandraConnection
    pipeline: str | None
    """None: every pipeline with a writer that fills the keyspace."""


class ControlLedger:
    """See ``Ledger``; nothing is asked before the first question, and each one is asked anew."""

    def __init__(
        self, topic: str, control: ControlPlane, journal: JournalDeclaration, pointers: Pointers
    ) -> None:
        self._topic, self._control, self._journal, self._pointers = topic, control, journal, pointers

    def known(self, key: str) -> Sequence[KnownTopic] | None:
        """See ``Ledger.known``."""
        try:
            session = connect(self._control.connection)
            if KEYSPACE not in session.cluster.metadata.keyspaces:
                return None
            return known_topics(
                LightweightConsensus(session),
                self._topic,
                self._journal,
                self._control.pipeline,
                lambda partitions: self._pointers.first_pointed(key, partitions),
            )
        except (Unauthorized, InvalidRequest):  # not for this user, or without its table
            return None
        except (CassandraUnreachable, *FAILURES) as error:
            reason = f"{type(error).__name__}: {error}"
            raise TablesUnreadable(self._topic, key, "the id of the topic that was bound", reason) from error


def known_topics(
    consensus: Consensus,
    topic: str,
    journal: JournalDeclaration,
    pipeline: str | None,
    first_pointed: FirstPointed,
) -> list[KnownTopic]:
    """What the pipeline knows of a topic, or every pipeline that fills the journal's keyspace from it."""
    names = [pipeline] if pipeline else sorted(set(_pipelines_of(consensus, topic, journal)))
    return [_known(LogControl(consensus, name), topic, first_pointed) for name in names]


def _pipelines_of(consensus: Consensus, topic: str, journal: JournalDeclaration) -> Iterator[str]:
    for name in consensus.names(ObjectKind.WRITER):
        pipeline, _, writer = name.partition("/")
        state = Positions(consensus, pipeline).load(writer)
        shape = state.shape if state else {}
        is_ours = (shape.get("kind"), shape.get("keyspace")) == ("journal", journal.keyspace)
        if is_ours and re.search(str(shape.get("namespaces", ".*")), topic):
            yield pipeline


def _known(control: LogControl, topic: str, first_pointed: FirstPointed) -> KnownTopic:
    bound = control.bindings_head().topic_ids.get(topic)
    return KnownTopic(control.pipeline, bound, _held(control, topic, first_pointed))


def _held(control: LogControl, topic: str, first_pointed: FirstPointed) -> str | None:
    """The id of the topic that the tables were filled from before its loss was accepted; None without one.

    A pointer is made at the time of the binding that was delivered first: one of the old topic's, or of those
    that were bound since. The number that a writer was registered with (``delivery.writer_topics``) would not
    do: it says what the tables shall hold, and a keyspace may have no writer, or nothing in it yet.
    """
    gone = [one for one in of_whole_topics(control.accepted_losses()) if one.loss.topic == topic]
    if not gone:
        return None
    newest = gone[-1]
    old = control.last_bound(topic, newest.after, newest.found)
    pointed = first_pointed({one.loss.partition for one in gone})
    if old is None or pointed is None or pointed // 1000 > old.t // 1000:
        return None
    return old.topic_ids.get(topic, UNKNOWN)
