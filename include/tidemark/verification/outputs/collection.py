"""Verification of a collection: the digests of its newest bindings, three times.

They are computed from the log, read as they were committed, and computed from the rows in Cassandra. All
three have to be equal. A sample leaves out bindings with very many messages, because they are computed in
this process. Bindings at or below the first readable time are not compared: old versions of their keys may
have been removed (``keep``). Nothing is written here.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tidemark.collection.model.envelopes.registry import ENVELOPES
from tidemark.delivery.binding_steps import error_text
from tidemark.delivery.published_log import PublishedLog, read_messages
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.target import TargetVerdict, compare, replaced
from tidemark.delivery.writer import BadMessage, TargetMissing, Writer, Writing, Written
from tidemark.delivery.writer_topics import TopicBeginnings
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.outputs.model.consumer_name import split_consumer
from tidemark.outputs.model.digest import ShardDigest, TimeDigests
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.verification.outputs.found import Extent, OutputDifference, OutputProblem, OutputVerification
from tidemark.writers.collection.errors import VersionsRemoved
from tidemark.writers.collection.writer import CollectionWriter

FORGOTTEN = "bindings that are not readable any more"
NO_DIGESTS = "bindings without committed digests"
EARLIER_MISSING = (
    "bindings with corrections, of which earlier rows are missing: compared once those are there"
)
TOO_MANY = "bindings with too many messages for a sample: --all compares them too"
NEVER_READ = -1
MOST_MESSAGES = 100_000
"""The most messages of a binding that is compared in a sample."""


class _NoLease:
    """The lease of a computation that writes nothing."""

    def check(self) -> None:
        """Nothing is written, so another process may write."""


@dataclass(frozen=True, slots=True)
class ThreeDigests:
    """The digests of one binding.

    Attributes:
        binding: The binding.
        committed: As they were committed.
        stored: Those of the rows in Cassandra.
        computed: Those of the log; None where compaction may have removed messages.
    """

    binding: Binding
    committed: TimeDigests
    stored: TimeDigests
    computed: TimeDigests | None

    @property
    def is_only_computed_otherwise(self) -> bool:
        """Whether the rows are as committed, and only what the log makes now differs."""
        return self.stored == self.committed and self.computed != self.committed

    @property
    def difference(self) -> OutputDifference | None:
        """What is different; None where nothing is."""
        there, expected = self.stored.total.count, self.committed.total.count
        if self.computed is not None and self.computed != self.committed:
            what = f"the log makes rows with digest {self.computed.total} now, not {self.committed.total}"
            return _difference(OutputProblem.CONTENT, self.binding, what)
        if there < expected:
            what = f"{expected - there:,} of its {expected:,} rows are missing"
            return _difference(OutputProblem.MISSING, self.binding, what)
        if self.stored != self.committed:
            what = f"its rows in Cassandra have digest {self.stored.total}, not {self.committed.total}"
            return _difference(OutputProblem.CONTENT, self.binding, what)
        return None


def verify_collection(
    writer: CollectionWriter, log: PublishedLog, positions: Positions, state: WriterState, extent: Extent
) -> OutputVerification:
    """Verify the newest bindings at or below the position, all of them, or those that are named by their
    time."""
    began = time.monotonic()
    refuse_other_shape(state, writer.shape)
    if gone := _target_problem(writer, state):
        return _result(state, began, 0, [gone], {})
    acknowledged = positions.acknowledged(writer.name)
    found: list[OutputDifference] = []
    unproven: dict[str, int] = {}
    count, since = 0, _since(positions, state)
    beginnings = TopicBeginnings.of(writer, log)
    doubtful: list[OutputDifference] = []
    has_corrections = ENVELOPES[writer.declared.envelope].has_corrections
    for binding, files in _chosen(log, state, extent):
        if binding.t <= since:
            unproven[FORGOTTEN] = unproven.get(FORGOTTEN, 0) + 1
            continue
        body = positions.digests(writer.name, binding.t)
        if body is None:
            unproven[NO_DIGESTS] = unproven.get(NO_DIGESTS, 0) + 1
            continue
        is_named = extent.everything or str(binding.t) in extent.names
        if not is_named and sum(file.most(binding.base, binding.end) for file in files) > MOST_MESSAGES:
            unproven[TOO_MANY] = unproven.get(TOO_MANY, 0) + 1
            continue
        count += 1
        committed, stored = TimeDigests.from_json(body), writer.target.digests(binding.t)
        try:
            is_whole = binding.base >= log.manifest.compacted_below
            told = beginnings.tell(writer, binding)
            computed = _computed(told, binding, files, log, acknowledged) if is_whole else None
        except VersionsRemoved as removed:
            if binding.t <= _since(positions, state):  # forgotten meanwhile
                unproven[FORGOTTEN] = unproven.get(FORGOTTEN, 0) + 1
            else:
                doubtful.append(_difference(OutputProblem.CONTENT, binding, error_text(removed)))
            continue
        except BadMessage as bad:
            found.append(_difference(OutputProblem.CONTENT, binding, error_text(bad)))
            continue
        digests = ThreeDigests(binding, committed, stored, computed)
        difference = digests.difference
        # Versions may be removed while they are read; their times are forgotten before.
        if difference and binding.t > _since(positions, state):
            is_doubtful = has_corrections and digests.is_only_computed_otherwise
            (doubtful if is_doubtful else found).append(difference)
    certain = _certain(doubtful, found)
    if len(certain) < len(doubtful):
        unproven[EARLIER_MISSING] = len(doubtful) - len(certain)
    return _result(state, began, count, [*found, *certain], unproven)


def _certain(
    doubtful: Sequence[OutputDifference], found: Sequence[OutputDifference]
) -> list[OutputDifference]:
    """Those of the bindings whose corrections were computed with all rows before them."""
    missing = [one.first_id for one in found if one.problem is OutputProblem.MISSING]
    return [one for one in doubtful if not any(first_id < one.first_id for first_id in missing)]


def _target_problem(writer: CollectionWriter, state: WriterState) -> OutputDifference | None:
    where = f"table {writer.place}"
    try:
        present = writer.identify()
    except TargetMissing:
        what = "it does not exist"
    else:
        if compare(state, present) is not TargetVerdict.REPLACED:
            return None
        what = str(replaced(state, present))
    return OutputDifference(OutputProblem.REPLACED, where, what, 0, state.position)


def _since(positions: Positions, state: WriterState) -> int:
    """The first time that readers may ask for; −1 where there is no output yet."""
    store = OutputStore(positions.consensus, state.pipeline, split_consumer(state.name)[0])
    if store.load() is None:
        return NEVER_READ
    return ReaderStore(store).load().since


def _chosen(
    log: PublishedLog, state: WriterState, extent: Extent
) -> Iterator[tuple[Binding, Sequence[LogFile]]]:
    """The bindings to compare, newest first."""
    wanted, count = set(extent.names), 0
    for binding in log.bindings.before():
        if binding.end > state.position:
            continue
        if not extent.everything and count >= extent.sample and not wanted:
            return
        if extent.everything or count < extent.sample or str(binding.t) in wanted:
            yield binding, log.manifest.files_of(binding)
        wanted.discard(str(binding.t))
        count += 1


def _computed(
    writer: Writer,
    binding: Binding,
    files: Sequence[LogFile],
    log: PublishedLog,
    acknowledged: Collection[int],
) -> TimeDigests:
    trial, total = writer.trial(), Written()
    for part in writer.cut(binding, files):
        total += trial.write(part, Writing(read_messages(log.folder, part, acknowledged), _NoLease()))
    timed = writer.timed_output()
    assert timed is not None, "a collection has times"
    return TimeDigests(binding.t, total.digests or (ShardDigest(),) * timed.shards)


def _difference(problem: OutputProblem, binding: Binding, what: str) -> OutputDifference:
    return OutputDifference(problem, str(binding.t), what, binding.base, binding.end)


def _result(
    state: WriterState,
    began: float,
    count: int,
    differences: Sequence[OutputDifference],
    not_provable: dict[str, int],
) -> OutputVerification:
    return OutputVerification(
        state.pipeline,
        state.name,
        "collection",
        state.position,
        {"bindings": count},
        tuple(sorted(differences, key=lambda one: one.first_id)),
        not_provable,
        time.monotonic() - began,
    )
