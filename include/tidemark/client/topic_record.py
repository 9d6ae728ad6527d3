"""Reads the recorded ids of a topic from the control plane, for ``topic_identity``. Read-only.

A pipeline's bindings store the id that a topic had when it was bound last. After a topic was recreated and
the loss of the old one was accepted, the bindings have the new id, or none. The tables still have the old
topic's events if their pointers were created before. A journal without a pipeline uses the writers that fill
its keyspace. Where the control plane does not exist or this user may not read it, no ids are known.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidemark.cassandra.driver import InvalidRequest, Unauthorized
from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.session import CassandraUnreachable, connect
from tidemark.client.errors import TablesUnreadable
from tidemark.client.topic_identity import UNKNOWN, KnownTopic
from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import KEYSPACE, LightweightConsensus
from tidemark.consensus.objects import Consensus, ObjectKind
from tidemark.delivery.state.positions import Positions
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.recreated_topics import of_whole_topics
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration

FirstPointed = Callable[[Collection[int]], int | None]
"""``Pointers.first_pointed`` of one topic."""


class Pointers(Protocol):
    """The pointers of a journal's tables."""

    def first_pointed(self, key: str, partitions: Collection[int]) -> int | None:
        """When the first pointer of these partitions was created, in µs; None without a pointer."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane's cluster, and the pipeline that replicates the journal."""

    connection: CassandraConnection
    pipeline: str | None
    """The pipeline's name; None: every pipeline with a writer that fills the keyspace."""


class ControlLedger:
    """``Ledger`` on the control plane. Connects on first use, and caches nothing."""

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
        except (Unauthorized, InvalidRequest):  # no permission, or no such table
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
    """The records of a topic: the pipeline's, or those of all pipelines that fill the journal's keyspace."""
    names = [pipeline] if pipeline else sorted(set(_pipelines_of(consensus, topic, journal)))
    return [_known(LogControl(consensus, name), topic, first_pointed) for name in names]


def _pipelines_of(consensus: Consensus, topic: str, journal: JournalDeclaration) -> Iterator[str]:
    for name in consensus.names(ObjectKind.WRITER):
        pipeline, _, writer = name.partition("/")
        state = Positions(consensus, pipeline).load(writer)
        shape = state.shape if state else {}
        is_same = (shape.get("kind"), shape.get("keyspace")) == ("journal", journal.keyspace)
        if is_same and re.search(str(shape.get("namespaces", ".*")), topic):
            yield pipeline


def _known(control: LogControl, topic: str, first_pointed: FirstPointed) -> KnownTopic:
    bound = control.bindings_head().topic_ids.get(topic)
    return KnownTopic(control.pipeline, bound, _held(control, topic, first_pointed))


def _held(control: LogControl, topic: str, first_pointed: FirstPointed) -> str | None:
    """The id of the old topic whose events the tables have, where its loss was accepted; else None.

    A pointer has the time of the first binding that was delivered. Up to the old topic's last binding, the
    tables have events of the old topic. The binding that a writer was registered with
    (``delivery.writer_topics``) is no substitute: it says what the tables are to hold, not what they hold,
    and a keyspace may have no writer.
    """
    losses = [one for one in of_whole_topics(control.accepted_losses()) if one.loss.topic == topic]
    if not losses:
        return None
    newest = losses[-1]
    bound_t, bound_id = newest.bound_t, newest.bound_id
    if (
        bound_t is None
    ):  # accepted by an earlier version: as long as no binding was archived, its row is there
        old = Bindings(control).last_of(topic, newest.after, newest.found)
        bound_t, bound_id = (old.t, old.topic_ids.get(topic)) if old else (0, None)
    pointed = first_pointed({one.loss.partition for one in losses})
    if not bound_t or pointed is None or pointed // 1000 > bound_t // 1000:
        return None
    return bound_id or UNKNOWN
