"""The plan: which files are written anew, what it shows, and how it is put onto a log that went on."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.compaction_samples import (
    EXAMPLE_C,
    EXAMPLE_C_ACTIVE,
    JOURNAL,
    LATEST,
    PROGRESS,
    MemoryLog,
    Sent,
    dropped_ids,
    given_log,
    of_keys,
    of_namespaces,
    plan_compaction,
)

from tidemark.compaction import plan as plan_module
from tidemark.compaction.census import Census
from tidemark.compaction.compact import marked
from tidemark.compaction.drops import Dropped
from tidemark.compaction.errors import NotConserved, PlanOutdated
from tidemark.compaction.exchange import cut_segments, exchange_files
from tidemark.compaction.plan import NEIGHBOURS, CompactionPlan, make_plan
from tidemark.compaction.policies.rules import CompactionRules, candidates, question_digest
from tidemark.compaction.proof import prove_outputs, prove_verdicts
from tidemark.log.model.manifest import LogFile, Manifest, Segment

pytestmark = pytest.mark.unit


def example_c() -> MemoryLog:
    return given_log(of_namespaces(EXAMPLE_C), of_namespaces(EXAMPLE_C_ACTIVE))


def made(log, policy=PROGRESS, positions=None, **further) -> CompactionPlan:
    return plan_compaction(log, policy, positions, **further)[0]


def output(group, digest="f" * 64) -> LogFile:
    first, last = group.files[0], group.files[-1]
    path = f"files/{first.first_id:020d}-{last.last_id:020d}-{digest[:12]}.parquet"
    return replace(first, path=path, last_id=last.last_id, t=last.t, count=group.kept, digest=digest)


def test_G11_the_plan_says_what_goes_where_and_who_is_in_the_way():
    plan = made(example_c(), positions={"c0": 27, "c1": 9})
    assert [(s.first_id, s.last_id, s.messages_before, s.messages_after) for s in plan.segments] == [
        (0, 16, 17, 11)
    ]
    assert plan.reasons == {"superseded": 6}
    assert (plan.watermark.id, plan.held_back_by, plan.watermark.withheld) == (9, "c1", 8)
    assert plan.bytes_after < plan.bytes_before


def test_G11_a_plan_is_the_same_whether_it_is_carried_out_or_not():
    log = example_c()
    assert made(log) == made(log)


def test_a_plan_survives_its_file():
    plan = made(example_c(), positions={"c0": 27, "c1": 9}, pins=(2,))
    assert CompactionPlan.from_bytes(plan.to_bytes()) == plan
    assert CompactionPlan.from_bytes(plan.to_bytes()).to_bytes() == plan.to_bytes()


def test_the_digest_is_of_inputs_and_rules():
    log, rules = example_c(), CompactionRules(PROGRESS, 9, 10)
    files = candidates(log.manifest)
    digest = question_digest("orders", files, rules)
    assert question_digest("orders", files, rules) == digest
    others = [
        question_digest("orders", files[1:], rules),
        question_digest("orders", [replace(files[0], digest="x"), *files[1:]], rules),
        question_digest("orders", files, replace(rules, watermark=8)),
        question_digest("orders", files, replace(rules, policy=LATEST)),
        question_digest("orders", files, replace(rules, pins=(1,))),
    ]
    assert digest not in others
    assert len(set(others)) == len(others)


def test_G4_a_log_of_one_segment_is_all_active():
    plan = made(given_log(of_keys("a a a")), LATEST)
    assert plan.is_empty
    assert len(plan.active_files) == 1


def test_T48_G4_an_empty_log_is_a_no_op():
    plan = made(given_log(), LATEST, {"w": -1})
    assert (plan.is_empty, plan.segments, plan.active_files) == (True, (), ())


def test_G13_a_file_in_which_nothing_goes_is_not_touched():
    plan = made(given_log(of_keys("a b c"), of_keys("d e f"), of_keys("z")), LATEST)
    assert plan.is_empty


def test_G13_what_has_neighbours_enough_becomes_one_file():
    segments = [of_keys(f"k{number}") for number in range(NEIGHBOURS)]
    plan = made(given_log(*segments, of_keys("z")), LATEST)
    assert [len(group.files) for group in plan.groups] == [NEIGHBOURS]
    assert plan.dropped == 0


def test_G13_large_clean_files_are_left_alone_between_dirty_ones():
    log = given_log(of_keys("a a"), of_keys("b c"), of_keys("d d"), of_keys("z"))
    rules = {"segment_bytes": 400}
    plan = planned_with(log, **rules)
    assert [[file.first_id for file in group.files] for group in plan.groups] == [[0], [4]]


def planned_with(log, segment_bytes):
    plan, surveyed, _ = plan_compaction(log, LATEST)
    rules = replace(plan.rules, segment_bytes=segment_bytes)
    return make_plan(log.manifest, plan.digest, 0, plan.watermark, rules, surveyed.census, surveyed.drops)


def test_G15_T49_small_survivors_of_a_partition_become_one_file_up_to_the_segment_size():
    log = given_log(of_keys("a b a b"), of_keys("a b c"), of_keys("a c c"), of_keys("z"))
    plan = made(log, LATEST)
    assert [(len(group.files), group.kept) for group in plan.groups] == [(3, 3)]
    assert [s.messages_after for s in plan.segments] == [0, 1, 2]


def test_G16_a_file_holds_no_more_messages_than_a_task_can_hold(monkeypatch):
    monkeypatch.setattr(plan_module, "MOST_MESSAGES", 4)
    log = given_log(*(of_keys(text) for text in ("a a b", "c c d", "e e f", "z")))
    plan = made(log, LATEST)
    assert [(len(group.files), group.kept) for group in plan.groups] == [(1, 2), (1, 2), (1, 2)]


def test_G16_files_with_many_messages_are_left_alone(monkeypatch):
    monkeypatch.setattr(plan_module, "MOST_MESSAGES", 4)
    log = given_log(*(of_keys(text) for text in ("a b", "c d", "e f", "g h", "z")))
    assert made(log, LATEST).is_empty


def test_G15_files_of_different_partitions_are_never_merged():
    first = [Sent(b"a"), Sent(b"a"), Sent(b"b", partition=1), Sent(b"b", partition=1)]
    plan = made(given_log(first, of_keys("z")), LATEST)
    assert [(group.files[0].partition, len(group.files)) for group in plan.groups] == [(0, 1), (1, 1)]


def replace_files(manifest: Manifest, plan: CompactionPlan, outputs: list[LogFile]) -> Manifest:
    exchange = exchange_files(manifest, plan.digest, plan.inputs, outputs, plan.rules.segment_bytes)
    return marked(exchange.apply(manifest), plan)


def test_replacing_puts_the_new_files_where_the_old_ones_were():
    log = given_log(of_keys("a b a b"), of_keys("a b c"), of_keys("z"))
    plan = made(log, LATEST)
    after = replace_files(log.manifest, plan, [output(plan.groups[0])])
    assert [[file.first_id for file in segment.files] for segment in after.segments] == [[0], [7]]
    assert (after.end, after.t, after.compacted_below) == (log.manifest.end, log.manifest.t, 7)


def test_G8_what_was_published_since_stays_in_the_new_manifest():
    log = given_log(of_keys("a b a b"), of_keys("z"))
    plan = made(log, LATEST)
    newer = replace(log.manifest.active.files[0], path="files/new", first_id=5, last_id=5)
    went_on = Manifest.of_segments("orders", (*log.manifest.segments, Segment((newer,))), end=5)
    after = replace_files(went_on, plan, [output(plan.groups[0])])
    assert [file.path for file in after.active.files] == ["files/new"]
    assert (after.segment_count, after.end) == (3, 5)


def test_G8_a_plan_whose_inputs_were_replaced_is_refused():
    log = given_log(of_keys("a b a b"), of_keys("z"))
    plan = made(log, LATEST)
    once = replace_files(log.manifest, plan, [output(plan.groups[0])])
    with pytest.raises(PlanOutdated, match="no longer part of the log") as refused:
        replace_files(once, plan, [output(plan.groups[0])])
    assert refused.value.plan == plan.digest


def test_replacing_everything_leaves_the_active_segment():
    log = given_log(of_keys("a"), of_keys("z"))
    exchange = exchange_files(log.manifest, "plan", candidates(log.manifest), [], 10**9)
    assert [file.first_id for file in exchange.apply(log.manifest).files] == [1]


def test_a_log_of_which_nothing_was_dropped_is_not_called_compacted():
    segments = [of_keys(f"k{number}") for number in range(NEIGHBOURS)]
    log = given_log(*segments, of_keys("z"))
    plan = made(log, LATEST)
    assert replace_files(log.manifest, plan, [output(plan.groups[0])]).compacted_below == 0


def test_closed_segments_hold_at_most_as_many_files_as_the_log_allows():
    files = [LogFile(f"files/{n}", 1, "t", n, n, n, 1, 1, "x") for n in range(450)]
    assert [len(segment.files) for segment in cut_segments(files, 10**9)] == [200, 200, 50]


# G10, before anything is written


FILES = [LogFile("files/1", 1, "t", 0, 0, 9, 10, 100, "x")]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Dropped("files/2", 10, 10, 0), "other files"),
        (Dropped("files/1", 9, 9, 0), "was to hold 10 messages, and 9 were found"),
        (Dropped("files/1", 10, 3, 4, superseded=4), "cannot be dropped"),
        (Dropped("files/1", 10, 10, 1, last_dropped=5, superseded=1), "not below the watermark"),
        (Dropped("files/1", 10, 10, 1, last_dropped=4, pinned_dropped=1, superseded=1), "pinned"),
        (Dropped("files/1", 10, 10, 2, last_dropped=4, superseded=1), "has its reason"),
        (Dropped("files/1", 10, 10, 1, 4, purged=1, kept_below_gone_purge=1), "without their purge"),
        (Dropped("files/1", 10, 10, 1, 4, deleted=1, kept_deletes=1), "0 deletes that stay"),
    ],
)
def test_G10_what_does_not_add_up_is_refused(wrong, said):
    with pytest.raises(NotConserved, match=said):
        prove_verdicts("orders", "f" * 64, CompactionRules(JOURNAL, 5, 10), Census(), FILES, [wrong])


def test_G10_every_key_is_accounted_for():
    found = Dropped("files/1", 10, 10, 0, kept_chosen=3)
    with pytest.raises(NotConserved, match="of 5 keys 3 have a last message and 1 need none"):
        prove_verdicts(
            "orders", "f" * 64, CompactionRules(LATEST, 5, 10), Census(5, gone=1, chosen=3), FILES, [found]
        )


def test_G10_new_files_hold_what_stays_and_nothing_else():
    prove_outputs("orders", "f" * 64, {"g": 3}, {"g": 3}, 0)
    with pytest.raises(NotConserved, match="3 messages stay, and 2 were written"):
        prove_outputs("orders", "f" * 64, {"g": 3}, {"g": 2}, 0)
    with pytest.raises(NotConserved, match="1 ids are not where they were"):
        prove_outputs("orders", "f" * 64, {"g": 3}, {"g": 3}, 1)


# G1, G2, G10 for any log


@st.composite
def keyed_messages(draw):
    return [
        Sent(
            draw(st.sampled_from([None, b"a", b"b", b"c"])),
            draw(st.sampled_from([b"v", b"v", None])),
            draw(st.sampled_from(["x", "y"])),
            draw(st.integers(0, 1)),
        )
        for _ in range(draw(st.integers(0, 25)))
    ]


@settings(max_examples=150, deadline=None)
@given(keyed_messages(), st.sampled_from([LATEST, PROGRESS]), st.data())
def test_G1_G2_G10_of_any_log_writers_positions_and_pins(messages, policy, data):
    cut = data.draw(st.integers(0, len(messages)))
    log = given_log(messages[:cut], messages[cut:], of_keys("z"), per_file=4)
    end = log.manifest.end
    writers = data.draw(st.dictionaries(st.sampled_from("uvw"), st.integers(-1, end), min_size=1))
    pins = tuple(sorted(data.draw(st.sets(st.integers(0, end), max_size=3))))
    before = data.draw(st.sampled_from([0, 1_005, 10**9])) if policy is LATEST else 0
    plan, surveyed, place = plan_compaction(log, policy, writers, pins=pins, tombstones_before=before)
    eligible = [file for file in candidates(log.manifest) if plan.rules.is_eligible(file)]
    prove_verdicts("orders", plan.digest, plan.rules, surveyed.census, eligible, surveyed.drops)

    gone, rows = dropped_ids(place), log.rows()
    below = [row for row in rows if row["id"] < min(*writers.values(), end)]
    assert gone <= {row["id"] for row in below} - set(pins)
    assert not below or below[-1]["id"] not in gone
    for row in below:
        same = [
            other
            for other in below
            if other["namespace"] == row["namespace"] and (policy is PROGRESS or other["key"] == row["key"])
        ]
        last = same[-1]
        if policy is LATEST and row["key"] is None:
            assert row["id"] not in gone
        elif row is not last and row["id"] not in (*pins, below[-1]["id"]):
            assert row["id"] in gone
        elif row is last and row["id"] in gone:
            assert policy is LATEST
            assert row["value"] is None
            assert row["t"] < before
            assert not [other for other in same if other["id"] not in gone]
