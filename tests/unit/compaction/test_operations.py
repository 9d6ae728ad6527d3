"""Policy `oplog`: void corrections go first, then all but the newest valid operation of each object.

What is left makes the same rows as everything, at every cut from the watermark on: a collection may be built
from it.
"""

from collections.abc import Iterable
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.collection_samples import given_columns
from tests.support.compaction_samples import (
    OPLOG,
    MemoryLog,
    compacted,
    given_log,
    operated,
    plan_compaction,
    survivors,
)
from tests.support.compaction_world import HOUR, World
from tests.support.oplog_world import OPERATIONS

from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.rows import RowRules, rows_of
from tidemark.collection.model.schema import CollectionSchema
from tidemark.collection.model.void_corrections import ValidOffsets
from tidemark.compaction.compact import Compacted
from tidemark.compaction.plan import CompactionPlan
from tidemark.compaction.policies import valid_operations
from tidemark.compaction.policies.rules import CompactionRules, candidates
from tidemark.compaction.policies.valid_operations import newest_valid, operations_of_batch
from tidemark.compaction.proof import prove_verdicts
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind

pytestmark = pytest.mark.unit

IDS = (("orders", "first"), ("orders", "second"))
KEY, COLUMNS = (given_columns(**dict(OPERATIONS[name])) for name in ("key", "columns"))
ROWS = RowRules(CollectionSchema(KEY, COLUMNS, 1), EnvelopeName.OPLOG)


def given_operations(words: str, per_file: int = 1_000) -> MemoryLog:
    """A log whose offsets are its ids; the last message is in the active segment."""
    return given_log([operated(word) for word in words.split()], [operated("end")], per_file=per_file)


def left(words: str, **further) -> list[int]:
    return survivors(given_operations(words), OPLOG, topic_ids=IDS[:1], **further)


def test_the_newest_operation_of_every_object_stays():
    assert left("x y x+ z y~ x+") == [3, 4, 5]


def test_a_delete_stays_for_ever():
    assert left("x x~ y", tombstones_before=10**9) == [1, 2]


def test_a_void_correction_goes_and_the_operation_before_it_stays():
    assert left("x y x~@0 y~@0 z") == [0, 1, 4]


def test_a_valid_correction_takes_the_place_of_what_was_there():
    assert left("x y x~@1 z") == [1, 2, 3]


def test_a_correction_that_was_sent_for_another_topic_goes():
    assert left("x x~@1!other z") == [0, 2]


def test_an_object_may_have_nothing_but_a_void_correction():
    assert left("x@0!other z") == [1]


def test_what_cannot_be_read_stays():
    assert left("x? x x+ z") == [0, 2, 3]


def test_what_an_operator_let_pass_stays_and_does_not_count():
    assert left("x x+ x~@1 z", acknowledged=(1,)) == [1, 2, 3]


def test_pinned_messages_stay():
    assert left("x x~@0 x+ z", pins=(0, 1)) == [0, 1, 2, 3]


def test_the_last_message_below_the_watermark_stays_also_where_it_is_void():
    assert left("x y x~@0") == [0, 1, 2]


@pytest.mark.parametrize("per_file", [1, 2, 3])
def test_an_operation_in_another_file_voids_as_well(per_file):
    log = given_operations("x y x~@0 x~@1 x+@2 z", per_file)
    assert survivors(log, OPLOG, topic_ids=IDS[:1]) == [1, 3, 5]


def test_offsets_of_an_earlier_topic_are_not_compared():
    old, new = (
        [operated("x", 7), operated("y", 8)],
        [operated("x~@5", 6, "second"), operated("y~@5", 7, "second")],
    )
    log = given_log([*old, *new], [operated("end", 9, "second")])
    assert survivors(log, OPLOG, recreated=(("orders", 2),), topic_ids=IDS) == [2, 3]


def test_where_topics_have_no_ids_every_correction_is_void():
    assert survivors(given_operations("x x~@1 z"), OPLOG) == [0, 2]


words = st.builds(
    lambda name, event, looked_at: name + event + ("" if looked_at is None else f"@{looked_at}"),
    st.sampled_from("xy"),
    st.sampled_from(["", "+", "~", "?"]),
    st.none() | st.integers(0, 14),
)
histories = st.lists(words, min_size=1, max_size=14)


def valid_rows(rows: Iterable[dict], passed: frozenset[int] = frozenset()) -> list[CollectionRow]:
    """The rows that a collection gets of messages: those that cannot be read are let pass."""
    valid, found = ValidOffsets({"orders": "first"}), []
    for row in rows:
        if row["id"] in passed:
            continue
        made = rows_of(pa.RecordBatch.from_pylist([row], schema=LOG_SCHEMA), ROWS)
        valid.learn(valid.unknown(made), {})
        found += valid.without_void(made).rows
    return found


def state(rows: Iterable[CollectionRow], cut: int) -> dict[tuple[bytes, ...], int]:
    """The newest message of each object up to an id."""
    return {row.key: row.message_id for row in rows if row.message_id <= cut}


@settings(max_examples=150, deadline=None)
@given(histories, st.sampled_from([1, 3, 100]))
def test_what_is_left_makes_the_same_rows_from_the_watermark_on(history, per_file):
    log = given_operations(" ".join(history), per_file)
    whole = valid_rows(log.rows())
    for watermark in range(1, log.manifest.end + 1):
        rest = valid_rows(compacted(log, OPLOG, watermark, topic_ids=IDS[:1]).rows())
        for cut in range(watermark - 1, log.manifest.end + 1):
            assert state(rest, cut) == state(whole, cut)
        later = [row for row in whole if row.message_id >= watermark]
        assert [row for row in rest if row.message_id >= watermark] == later


@settings(max_examples=100, deadline=None)
@given(histories, st.data())
def test_repeated_compaction_with_pins_that_come_and_go_and_messages_let_pass(history, data):
    log = given_operations(" ".join(history), 4)
    end, rest, watermark = log.manifest.end, log, 0
    passed = data.draw(st.sets(st.integers(0, end), max_size=2))
    whole = valid_rows(log.rows(), frozenset(passed))
    for _ in range(3):
        watermark = data.draw(st.integers(watermark, end))
        pins = tuple(sorted(data.draw(st.sets(st.integers(0, end), max_size=2))))
        known = tuple(sorted(id_ for id_ in passed if id_ < watermark))
        keys = {"pins": pins, "acknowledged": known, "topic_ids": IDS[:1]}
        rest = compacted(rest, OPLOG, watermark, **keys)
        for cut in range(max(watermark - 1, 0), end + 1):
            assert state(valid_rows(rest.rows(), frozenset(passed)), cut) == state(whole, cut)
        assert compacted(rest, OPLOG, watermark, **keys).ids == rest.ids


@settings(max_examples=200, deadline=None)
@given(histories, st.data())
def test_the_choice_does_not_depend_on_how_the_log_is_cut(history, data):
    log = given_operations(" ".join(history))
    (file,) = candidates(log.manifest)
    batch, rules = log.files[file.path], CompactionRules(OPLOG, 10**6, 1, topic_ids=IDS[:1])
    whole = newest_valid(operations_of_batch(file, 0, batch, rules).facts)
    cuts = sorted({0, batch.num_rows, *data.draw(st.sets(st.integers(0, batch.num_rows), max_size=3))})
    parts = [
        operations_of_batch(file, 0, batch.slice(first, last - first), rules).facts
        for first, last in pairwise(cuts)
    ]
    merged = parts[0]
    for part in parts[1:]:  # neighbours are merged, or kept beside each other
        both = pa.concat_tables([merged, part])
        merged = valid_operations.merge_operations(both) if data.draw(st.booleans()) else both
    order = pa.array(data.draw(st.permutations(range(merged.num_rows))), pa.int64())
    rows = merged.take(order)
    assert sorted(newest_valid(rows)["id"].to_pylist()) == sorted(whole["id"].to_pylist())


@given(histories)
def test_the_proof_accounts_for_every_message(history):
    log = given_operations(" ".join(history), 3)
    plan, surveyed, _ = plan_compaction(log, OPLOG, topic_ids=IDS[:1])
    eligible = [file for file in candidates(log.manifest) if plan.rules.is_eligible(file)]
    prove_verdicts("orders", plan.digest, plan.rules, surveyed.census, eligible, surveyed.drops)
    newest = state(valid_rows(log.rows()[:-1]), log.manifest.end)
    assert surveyed.census.keys == surveyed.census.chosen == len(newest)


def test_facts_are_merged_while_they_are_gathered(monkeypatch):
    monkeypatch.setattr("tidemark.compaction.survey.MOST_ROWS", 4)
    log = given_operations(" ".join(["x", "y", "x~@9", "y~@20", *["x+", "y+"] * 50, "z"]), 5)
    assert survivors(log, OPLOG, topic_ids=IDS[:1]) == [102, 103, 104]


# With a control plane and files


def given_world(tmp_path, *bindings: str) -> World:
    world = World(tmp_path, OPLOG, topic_ids=(("orders", "first"),))
    for text in (*bindings, "end"):
        world.publish(*(operated(word) for word in text.split()))
    pass_everything(world)
    return world


def pass_everything(world: World) -> None:
    world.move(world.control.log_head().end)
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)


def test_a_log_is_compacted_with_the_ids_of_its_topic(tmp_path):
    world = given_world(tmp_path, "x y x~@2", "y~@0 x+ z~@3", "w")
    assert isinstance(world.compact(), Compacted)
    assert world.ids() == [1, 4, 5, 6, 7]
    assert tuple(world.log.policies) == (OPLOG,)
    again = world.compact("again")
    assert isinstance(again, CompactionPlan)
    assert again.is_empty


def test_a_plan_is_read_as_it_was_stored(tmp_path):
    plan = given_world(tmp_path, "x x+", "y").compaction().look()
    assert plan.rules.topic_ids == (("orders", "first"),)
    assert CompactionPlan.from_bytes(plan.to_bytes()) == plan


def test_a_recreated_topic_is_known_by_its_own_id(tmp_path):
    world = given_world(tmp_path, "x y", "z")
    head = world.control.bindings_head()
    loss = Loss(LossKind.RECREATED, "orders", 0, 4, 4, "second")
    accepted = AcceptedLoss(loss, None, world.log.end, "ann", "known", 9, 1, True)
    world.control.record_losses(head, [accepted])
    world.topic_ids = (("orders", "second"),)
    world.publish(
        operated("x~@0", topic_id="second"),
        operated("y~@0", topic_id="first"),
        operated("x@0", topic_id="second"),
    )
    world.publish(operated("w"))
    world.publish(operated("v"))
    pass_everything(world)
    rules = world.questions().ask().rules
    assert rules.recreated == (("orders", 4),)
    assert rules.topic_ids == (("orders", "first"), ("orders", "second"))
    world.compact()
    assert world.ids() == [1, 2, 3, 4, 7, 8]
