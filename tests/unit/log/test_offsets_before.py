"""The last offsets before a binding: few reads, however many bindings there are, and the same answer as from
reading all of them."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.archive_world import BINDINGS, ArchiveWorld
from tests.support.log_samples import SEGMENT_BYTES, add_binding, given_binding

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, ObjectKey, Snapshot
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import BindingsMissing
from tidemark.log.files.binding_lists import BindingListReader
from tidemark.log.model.binding import NOTHING_YET, Binding, Slice, TopicPartition
from tidemark.log.model.binding_list import ListedBindings
from tidemark.log.model.bound_times import BoundTimes
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.model.recreated_topics import Recreations
from tidemark.log.publish import read_log
from tidemark.log.state.control import BindingsHead, LogControl

pytestmark = pytest.mark.unit

PLACES = [("orders", 0), ("orders", 1), ("refunds", 0), ("refunds", 1)]


def last_offsets(
    older: list[Binding], binding: Binding, is_same: Callable[[str, Binding], bool]
) -> dict[TopicPartition, int]:
    """The answer from reading one binding after the other."""
    found: dict[TopicPartition, int] = {}
    for one in reversed(older):
        for s in one.slices:
            if (s.topic, s.partition) in binding.shifts and is_same(s.topic, one):
                found.setdefault((s.topic, s.partition), s.upper - 1)
    return found


# The same answer


@dataclass
class History:
    """A log that is bound, archived and repaired, also by processes of an earlier version."""

    world: ArchiveWorld
    bindings: list[Binding] = field(default_factory=list)
    """As they were returned when they were made."""

    def bind(self, places: set[TopicPartition]) -> None:
        """Bind another two offsets of each of these partitions."""
        control, head = self.world.control, self.world.control.bindings_head()
        end = self.bindings[-1].end if self.bindings else NOTHING_YET
        t = (self.bindings[-1].t if self.bindings else 0) + 10
        lowers = {place: head.reached.get(place, 0) for place in sorted(places)}
        slices = tuple(Slice(*place, lower, lower + 2) for place, lower in lowers.items())
        self.bindings.append(control.add_binding(head, Binding(t, end + 1, slices, f"run-{t}")))

    def bind_by_earlier_version(self, places: set[TopicPartition]) -> None:
        self.bind(places)
        binding = replace(self.bindings[-1], last_bound={})
        self.put({f"t/{binding.t:020d}": binding.to_json()})
        self.bindings[-1] = binding
        self.rewrite_by_earlier_version(places)

    def rewrite_by_earlier_version(self, _: set[TopicPartition]) -> None:
        rows = self.world.consensus.read(BINDINGS, ["head"]).rows
        if rows:
            body = json.loads(rows["head"])
            body.pop("bound", None)
            self.put({"head": json.dumps(body)})

    def put(self, rows: dict[str, str]) -> None:
        version = self.world.consensus.read(BINDINGS, []).version
        self.world.consensus.commit(BINDINGS, version, Change(rows))

    def lose(self, places: set[TopicPartition]) -> None:
        """Kafka removed offsets of these partitions before they were bound."""
        reached = self.world.control.bindings_head().reached
        self._accept([Loss(LossKind.RETENTION, *p, reached.get(p, 0), reached.get(p, 0) + 5) for p in places])

    def recreate(self, places: set[TopicPartition]) -> None:
        """The topics of these partitions were deleted and recreated."""
        reached = self.world.control.bindings_head().reached
        topics = {topic for topic, _ in places}
        self._accept(
            [
                Loss(LossKind.RECREATED, *place, upper, upper, "another")
                for place, upper in sorted(reached.items())
                if place[0] in topics
            ]
        )

    def _accept(self, losses: list[Loss]) -> None:
        control, after = self.world.control, self.bindings[-1].end if self.bindings else NOTHING_YET
        found = 1 + len(control.accepted_losses())
        accepted = [AcceptedLoss(one, None, after, "ann", "known", 1, found) for one in losses]
        if accepted:
            control.record_losses(control.bindings_head(), accepted)

    def archive(self, _: set[TopicPartition], *, is_removed: bool = True) -> None:
        manifest = read_log(self.world.control, self.world.folder)
        for binding in self.bindings:
            if binding.t > manifest.t:
                manifest = manifest.with_binding(binding.t, binding.end, (), SEGMENT_BYTES)
        if self.bindings:
            self.world.make_current(manifest, is_removed=is_removed)

    def archive_and_crash(self, places: set[TopicPartition]) -> None:
        self.archive(places, is_removed=False)


STEPS = [
    *[History.bind] * 6,
    History.bind_by_earlier_version,
    History.rewrite_by_earlier_version,
    History.lose,
    History.recreate,
    History.archive,
    History.archive_and_crash,
]


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.sets(st.sampled_from(PLACES), min_size=1, max_size=3)),
        min_size=10,
        max_size=50,
    ),
    keep=st.sampled_from([20, 60, 150]),
)
def test_any_history_gives_the_same_offsets_as_reading_all_bindings(steps, keep):
    with tempfile.TemporaryDirectory() as root:
        history = History(ArchiveWorld(Path(root), keep=keep))
        for step, places in steps:
            step(history, places)
        world = history.world
        numbers = Recreations.of(world.control.accepted_losses()).number_in
        for older, (made, now) in enumerate(zip(history.bindings, world.door.every(), strict=True)):
            assert made == now
            for is_same in (
                lambda topic, one: True,
                lambda topic, one, now=now: numbers(topic, one) == numbers(topic, now),
            ):
                expected = last_offsets(history.bindings[:older], now, is_same)
                assert world.door.offsets_before(now, is_same) == expected
                assert world.door.offsets_before(made, is_same) == expected


# How much is read


class CountingConsensus(MemoryConsensus):
    """Counts the reads of bindings."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read(self, key: ObjectKey, rows: list[str]) -> Snapshot:
        self.reads += 1
        return super().read(key, rows)

    def scan(self, key: ObjectKey, prefix: str, **options: object) -> Snapshot:
        self.reads += 1
        return super().scan(key, prefix, **options)  # type: ignore[arg-type]


def given_long_log(count: int, quiet: int = 1) -> tuple[CountingConsensus, LogControl]:
    """Bindings of one busy partition; the first ones are also the last of one quiet partition each."""
    consensus = CountingConsensus()
    rows, head, end = dict[str, str](), BindingsHead(), NOTHING_YET
    times = BoundTimes()
    for i in range(count):
        slices = [("busy", 0, i, i + 1), *([("quiet", i, 0, 7)] if i < quiet else [])]
        binding = given_binding(10 * (i + 1), end + 1, *slices, run_id=f"run-{i}")
        rows[f"t/{binding.t:020d}"] = binding.to_json()
        times, end = times.after(binding) if i < quiet or i == count - 1 else times, binding.end
    head = BindingsHead(0, 10 * count + 1, 10 * count, {("busy", 0): count}, bound=times)
    consensus.commit(BINDINGS, 0, Change({**rows, "head": head.to_json()}))
    return consensus, LogControl(consensus, "orders")


def given_next(control: LogControl, *slices: tuple[str, int, int, int]) -> Binding:
    newest = Bindings(control).at(control.bindings_head().newest)
    binding = given_binding(newest.t + 10, newest.end + 1, *slices, run_id="late")
    return control.add_binding(control.bindings_head(), binding)


def test_a_new_and_a_quiet_partition_after_20_000_bindings_take_three_reads():
    consensus, control = given_long_log(20_000)
    late = given_next(control, ("busy", 0, 20_000, 20_001), ("new", 0, 0, 1), ("quiet", 0, 7, 8))
    consensus.reads = 0
    assert Bindings(control).offsets_before(late) == {("busy", 0): 19_999, ("quiet", 0): 6}
    assert consensus.reads == 3


def test_many_partitions_that_were_quiet_since_different_times_are_read_together():
    consensus, control = given_long_log(300, quiet=120)
    late = given_next(control, *[("quiet", i, 7, 8) for i in range(120)])
    consensus.reads = 0
    assert Bindings(control).offsets_before(late) == {("quiet", i): 6 for i in range(120)}
    assert consensus.reads == 4


def test_only_new_partitions_take_no_read():
    consensus, control = given_long_log(300)
    late = given_next(control, ("new", 0, 0, 1))
    consensus.reads = 0
    assert Bindings(control).offsets_before(late) == {}
    assert consensus.reads == 0


def test_quiet_partitions_whose_bindings_left_take_one_list(tmp_path, monkeypatch):
    history = History(ArchiveWorld(tmp_path))
    history.bind({("refunds", 0)})
    history.bind({("refunds", 1)})
    for _ in range(40):
        history.bind({("orders", 0)})
    history.archive(set())
    history.bind({("orders", 0), ("refunds", 0), ("refunds", 1)})
    assert history.world.control.bindings_head().removed > 20
    read, whole = [], BindingListReader.read

    def count(reader: BindingListReader, line: object) -> ListedBindings:
        read.append(line)
        return whole(reader, line)

    monkeypatch.setattr(BindingListReader, "read", count)
    expected = {("orders", 0): 79, ("refunds", 0): 1, ("refunds", 1): 1}
    assert (history.world.door.offsets_before(history.bindings[-1]), len(read)) == (expected, 1)


def test_a_topic_that_was_recreated_ends_the_search():
    consensus, control = given_long_log(20_000)
    late = given_next(control, ("quiet", 0, 0, 1))
    consensus.reads = 0
    assert Bindings(control).offsets_before(late, lambda topic, older: older.t > 10) == {}
    assert consensus.reads == 2


# What is not known


def test_after_an_upgrade_a_search_begins_where_the_earlier_version_ended():
    consensus, control = given_long_log(1_000)
    head = control.bindings_head()
    consensus.commit(BINDINGS, head.version, Change({"head": replace(head, bound=None).to_json()}))
    for lower in range(1_000, 1_003):
        given_next(control, ("busy", 0, lower, lower + 1))
    late = given_next(control, ("new", 0, 0, 1), ("quiet", 0, 7, 8))
    assert late.last_bound == {("quiet", 0): 10_000, ("new", 0): 10_000}
    assert Bindings(control).offsets_before(late) == {("quiet", 0): 6}


def test_a_first_binding_has_no_times(tmp_path):
    history = History(ArchiveWorld(tmp_path))
    history.bind({("orders", 0)})
    assert "last_bound" not in history.bindings[0].to_json()


def test_a_partition_that_was_started_from_an_offset_was_never_bound(tmp_path):
    control = ArchiveWorld(tmp_path).control
    control.start_from(control.bindings_head(), {("orders", 0): 5, ("orders", 1): 7})
    add_binding(control, given_binding(10, 0, ("orders", 0, 5, 6)))
    late = given_next(control, ("orders", 1, 7, 8))
    assert late.last_bound == {("orders", 1): NOTHING_YET}


def test_the_row_of_a_binding_keeps_its_times_and_a_list_does_not():
    _, control = given_long_log(5)
    late = given_next(control, ("busy", 0, 5, 6), ("new", 0, 0, 1), ("quiet", 0, 7, 8))
    assert control.binding_at(late.t).last_bound == {("new", 0): NOTHING_YET, ("quiet", 0): 10}
    (listed,) = ListedBindings.from_bytes(ListedBindings((), (late,)).to_bytes()).bindings
    assert (listed, dict(listed.last_bound)) == (late, {})


# Gaps


def test_a_row_that_was_deleted_by_hand_is_a_gap():
    consensus, control = given_long_log(300)
    late = given_next(control, ("busy", 0, 300, 301), ("quiet", 0, 7, 8))
    head = control.bindings_head()
    consensus.commit(BINDINGS, head.version, Change(deletes=[f"t/{10:020d}"]))
    with pytest.raises(BindingsMissing, match="bindings of ids 0 to"):
        Bindings(control).offsets_before(late)


def test_an_older_binding_never_stands_in_for_one_that_was_deleted_by_hand(tmp_path):
    history = History(ArchiveWorld(tmp_path))
    for places in ({("orders", 0), ("orders", 1)}, {("orders", 1)}, {("refunds", 0)}, set(PLACES[:2])):
        history.bind(places)
    assert history.bindings[-1].last_bound == {("orders", 0): 10, ("orders", 1): 20}
    head = history.world.control.bindings_head()
    history.world.consensus.commit(BINDINGS, head.version, Change(deletes=[f"t/{20:020d}"]))
    with pytest.raises(BindingsMissing):
        history.world.door.offsets_before(history.bindings[-1])
