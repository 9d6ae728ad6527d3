"""Replaying a compacted journal into empty tables gives what replaying all of it gives.

At every cut from the watermark on, after repeated compactions, for histories as unruly as they come: numbers
repeated and left out, deletes that overshoot or come first, purges, messages that cannot be understood or
applied, two partitions, pins, and messages that a person let pass.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.compaction_samples import JOURNAL, compacted, given_log, plan_compaction
from tests.support.journal_replay import NEXT, assert_same, messages

from tidemark.compaction.policies.journal_facts import facts_of, judge, merge_facts
from tidemark.compaction.policies.rules import candidates
from tidemark.compaction.proof import prove_verdicts
from tidemark.journal.action import Append, Delete, Mark, Purge
from tidemark.journal.codec.record import read_action
from tidemark.journal.errors import Undecodable

pytestmark = pytest.mark.unit

SIZES = (2, 3, 10_000)


@settings(max_examples=60, deadline=None)
@given(messages(most=10), st.sampled_from(SIZES))
def test_every_cut_of_a_compacted_journal_replays_like_the_whole(history, size):
    log = given_log(history, [NEXT])
    end, full = log.manifest.end, log.rows()
    for watermark in range(1, end + 1):
        left = compacted(log, JOURNAL, watermark).rows()
        for cut in range(watermark - 1, end + 1):
            assert_same(full, left, cut, size)


@settings(max_examples=100, deadline=None)
@given(messages(most=24, kinds="aaaaaaddppm"), st.sampled_from(SIZES))
def test_orderly_histories_replay_too(history, size):
    log = given_log(history, [NEXT], per_file=4)
    end, full = log.manifest.end, log.rows()
    for watermark in range(1, end + 1, 3):
        left = compacted(log, JOURNAL, watermark).rows()
        for cut in (watermark - 1, end):
            assert_same(full, left, cut, size)


@settings(max_examples=100, deadline=None)
@given(messages(most=24), st.data())
def test_repeated_compaction_replays_like_the_whole_with_pins_that_come_and_go(history, data):
    log = given_log(history, [NEXT], per_file=5)
    end, full, left, watermark = log.manifest.end, log.rows(), log, 0
    size = data.draw(st.sampled_from(SIZES))
    for _ in range(3):
        watermark = data.draw(st.integers(watermark, end))
        pins = tuple(sorted(data.draw(st.sets(st.integers(0, end), max_size=2))))
        left = compacted(left, JOURNAL, watermark, pins=pins)
        there = {row["id"] for row in left.rows()}
        for cut in range(max(watermark - 1, 0), end + 1):
            assert_same(full, left.rows(), cut, size)
        assert compacted(left, JOURNAL, watermark, pins=pins).ids == sorted(there)


@settings(max_examples=100, deadline=None)
@given(messages(), st.data())
def test_tables_that_miss_what_a_person_let_pass_stay_provable(history, data):
    log = given_log(history, [NEXT])
    end, size = log.manifest.end, data.draw(st.sampled_from(SIZES))
    passed = data.draw(st.sets(st.integers(0, end), max_size=2))
    watermark = data.draw(st.integers(1, end))
    known = tuple(sorted(id_ for id_ in passed if id_ < watermark))
    left = compacted(log, JOURNAL, watermark, acknowledged=known).rows()
    for cut in range(watermark - 1, end + 1):
        assert_same(log.rows(), left, cut, size, frozenset(passed))


@settings(max_examples=100, deadline=None)
@given(messages(), st.data())
def test_G10_everything_a_journal_drops_has_its_reason(history, data):
    log = given_log(history, [NEXT], per_file=3)
    position = data.draw(st.integers(-1, log.manifest.end))
    pins = tuple(sorted(data.draw(st.sets(st.integers(0, log.manifest.end), max_size=3))))
    plan, surveyed, place = plan_compaction(log, JOURNAL, {"w": position}, pins=pins)
    eligible = [file for file in candidates(log.manifest) if plan.rules.is_eligible(file)]
    prove_verdicts("orders", plan.digest, plan.rules, surveyed.census, eligible, surveyed.drops)

    gone = {int(i) for (kind, _), ids in place.notes.items() if kind == "dropped" for i in ids}
    rows = [row for row in log.rows() if row["id"] < position]
    assert gone <= {row["id"] for row in rows} - set(pins)
    actions = {row["id"]: understood(row) for row in rows}
    for id_ in gone:
        action = actions[id_]
        if action is None or isinstance(action, Mark):
            continue
        mine = {i: a for i, a in actions.items() if keys_of(log, i) == keys_of(log, id_)}
        later = [i for i, a in mine.items() if i > id_ and isinstance(a, Delete) and i not in gone]
        purges = [i for i, a in mine.items() if i >= id_ and isinstance(a, Purge)]
        kept_below = [i for p in purges for i in mine if i < p and i not in gone and is_action(mine[i])]
        assert later or any(p not in gone for p in purges) or (purges and not kept_below)


def understood(row):
    headers = [(one["name"], one["value"]) for one in row["headers"]]
    try:
        return read_action(row["key"], row["value"], row["timestamp"], row["timestamp_type"], headers)
    except Undecodable:
        return "undecodable"


def is_action(action):
    return action is not None and not isinstance(action, Mark)


def keys_of(log, id_):
    return next(row["key"] for row in log.rows() if row["id"] == id_)


@settings(max_examples=100, deadline=None)
@given(messages(most=10), st.data())
def test_facts_are_the_same_however_a_history_is_cut(history, data):
    facts = []
    for id_, one in enumerate(history):
        try:
            action = read_action(one.key, one.value, one.timestamp, one.timestamp_type, one.headers)
        except Undecodable:
            action = None
        if isinstance(action, Mark):
            continue
        taken = action if isinstance(action, Append | Delete) else None
        place = (id_, 1_000 + id_, one.partition, id_)
        pinned = data.draw(st.booleans())
        facts.append(facts_of(place, taken, is_purge=isinstance(action, Purge), is_pinned=pinned))
    if not facts:
        return
    cut = data.draw(st.integers(0, len(facts)))
    parts = [merge_facts(part) for part in (facts[:cut], facts[cut:]) if part]
    assert merge_facts(reversed(parts)) == merge_facts(facts)
    assert judge(merge_facts(parts)) == judge(merge_facts(facts))
