"""Control rows, digests, and the texts of errors."""

import json
import pickle
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.output_samples import (
    OPERATOR,
    PIPELINE,
    TAINT,
    WRITER,
    given_building,
    given_handed_over,
    given_output,
    given_readers,
    given_verified,
    open_at,
    proposal,
    sides,
)

from tidemark.log.model.binding import Binding, Slice
from tidemark.outputs import errors, reader_errors, settings
from tidemark.outputs.errors import OutputDamaged, OutputError, ShardsDiffer
from tidemark.outputs.model import handover
from tidemark.outputs.model.capability import pin
from tidemark.outputs.model.digest import ShardDigest, TimeDigests, differing_shards, shard_of
from tidemark.outputs.model.handover import hand_over
from tidemark.outputs.model.lifecycle import abandon, begin_retire, declare, mark_tainted
from tidemark.outputs.model.retention import mark_trimmed
from tidemark.outputs.model.rows import (
    changed_rows,
    output_from_rows,
    output_rows,
    reader_row,
    reader_rows,
    readers_from_rows,
)
from tidemark.outputs.model.upper import upper_of

pytestmark = pytest.mark.unit

# control rows

DETAILED = hand_over(
    given_building(),
    2,
    open_at(70),
    sides(),
    OPERATOR,
    force=True,
    details={"orders.r2": [4, 9]},
    soak=3_600_000_000,
)


@pytest.mark.parametrize(
    "output",
    [
        given_output(),
        given_verified(),
        abandon(given_verified(), 2, OPERATOR),
        declare(given_handed_over(), proposal(3)),
        mark_tainted(given_handed_over(), 1, TAINT),
        begin_retire(given_handed_over(), 1, 50, OPERATOR),
        DETAILED,
        mark_trimmed(given_output(50), 1, 30),
    ],
    ids=["first", "verified", "abandoned", "handed over", "tainted", "retiring", "forced", "trimmed"],
)
def test_an_output_is_the_same_after_its_rows_were_read_back(output):
    rows = output_rows(output)
    assert all(isinstance(body, str) for body in rows.values())
    assert output_from_rows("orders", "accounts", rows) == output


def test_a_rendition_of_an_earlier_version_was_never_trimmed():
    rows = dict(output_rows(given_output()))
    (name,) = [name for name in rows if name.startswith("rendition/")]
    body = json.loads(rows[name])
    del body["trimmed"]
    found = output_from_rows(PIPELINE, WRITER, rows | {name: json.dumps(body)})
    assert found == given_output()


def test_a_handover_of_an_earlier_version_has_no_time_to_return_of_its_own():
    rows = dict(output_rows(given_output()))
    (name,) = [name for name in rows if name.startswith("handover/")]
    body = json.loads(rows[name])
    del body["soak"]
    found = output_from_rows(PIPELINE, WRITER, rows | {name: json.dumps(body)})
    assert found.handovers[0].soak is None


def test_readers_are_the_same_after_their_rows_were_read_back():
    readers = pin(given_readers(since=10, deadline=99, a=40), "year end", 20, "ann")
    assert readers_from_rows("orders", "accounts", reader_rows(readers)) == readers


def test_the_names_of_the_rows():
    assert list(output_rows(given_handed_over(h=50))) == [
        "head",
        "rendition/00000000000000000001",
        "rendition/00000000000000000002",
        "handover/00000000000000000000",
        "handover/00000000000000000050",
    ]
    assert list(reader_rows(given_readers(a=1))) == ["head", "reader/47"]


def test_a_handover_writes_its_row_both_states_and_the_head():
    changes = changed_rows(output_rows(given_verified(50)), output_rows(given_handed_over(h=50)))
    assert sorted(changes) == [
        "handover/00000000000000000050",
        "head",
        "rendition/00000000000000000001",
        "rendition/00000000000000000002",
    ]


def test_a_reader_that_ends_leaves_its_row_and_touches_no_other():
    before, after = reader_rows(given_readers(a=1, b=2)), given_readers(b=2)
    assert changed_rows(before, reader_rows(after, before)) == {reader_row("a"): "[]"}


def test_readers_share_rows_and_each_is_found_in_its_own():
    names = [f"reader {number}" for number in range(200)]
    rows = reader_rows(given_readers(**dict.fromkeys(names, 5)))
    assert 33 < len(rows) <= 65
    for name in names:
        part = readers_from_rows(
            "orders", "accounts", {"head": rows["head"], reader_row(name): rows[reader_row(name)]}
        )
        assert part.held_by(name, now=0).t == 5


def test_the_row_of_a_reader_is_fixed_for_ever():
    assert [reader_row(name) for name in ("a", "year end", "")] == ["reader/47", "reader/53", "reader/52"]


def test_rows_without_a_head_or_with_a_missing_rendition_are_damaged():
    rows = output_rows(given_handed_over())
    for missing in ("head", "rendition/00000000000000000001"):
        with pytest.raises(OutputDamaged):
            output_from_rows("orders", "accounts", {k: v for k, v in rows.items() if k != missing})
    with pytest.raises(OutputDamaged):
        readers_from_rows("orders", "accounts", {})


# digests


def test_the_hash_and_the_shard_of_a_key_are_fixed_for_ever():
    assert str(ShardDigest.of([b"alice"])) == "1:69b5957599f918e276a3d2428acdc997"
    assert [shard_of(key, 8) for key in (b"alice", b"bob", b"carol", b"")] == [1, 2, 1, 4]


@given(st.lists(st.binary(max_size=3)), st.randoms(), st.integers(1, 5))
def test_a_digest_depends_on_the_rows_alone(rows, random, shards):
    shuffled = random.sample(rows, len(rows))
    assert ShardDigest.of(rows) == ShardDigest.of(shuffled)
    parts = [ShardDigest.of(r for r in shuffled if shard_of(r, shards) == n) for n in range(shards)]
    assert TimeDigests(1, tuple(parts)).total == ShardDigest.of(rows)


def test_a_row_that_is_there_twice_is_counted_twice():
    assert ShardDigest.of([b"a", b"a"]) not in (ShardDigest.of([b"a"]), ShardDigest.of([]))
    assert ShardDigest.of([b"a", b"b"]).count == 2


def test_sums_stay_below_2_to_the_128():
    almost = ShardDigest(1, 2**128 - 1)
    assert (almost + almost).total == 2**128 - 2
    assert ShardDigest.parse(str(almost)) == almost


def given_digests(*shards: bytes) -> TimeDigests:
    return TimeDigests(60, tuple(ShardDigest.of([row]) for row in shards))


@pytest.mark.parametrize(
    ("committed", "expected"),
    [(None, []), (given_digests(b"a", b"b"), []), (given_digests(b"a", b"x"), [1])],
    ids=["none committed", "all equal", "one differs"],
)
def test_a_time_is_written_again_only_where_it_is_the_same(committed, expected):
    assert list(differing_shards(given_output(), 1, committed, given_digests(b"a", b"b"))) == expected


def test_digests_of_another_number_of_shards_are_refused():
    with pytest.raises(ShardsDiffer) as refusal:
        differing_shards(given_output(), 1, given_digests(b"a"), given_digests(b"a", b"b"))
    assert (refusal.value.committed, refusal.value.found) == (1, 2)


# the upper


@st.composite
def histories(draw):
    """Bindings, how far they were bound and how far a rendition had come, before and after some time."""
    widths = draw(st.lists(st.integers(1, 5), max_size=6))
    bindings, base, t = [], 0, 0
    for width in widths:
        t += draw(st.integers(width + 1, 20))
        bindings.append(Binding(t, base, (Slice("p", 0, base, base + width),), f"run at {t}"))
        base += width
    first = draw(st.integers(0, len(bindings)))
    reached = draw(st.integers(-1, bindings[first - 1].end if first else -1))
    return bindings, first, reached, draw(st.integers(reached, base - 1))


@given(histories())
def test_the_upper_never_goes_back_and_has_only_finished_bindings_below_it(history):
    bindings, first, reached, later = history
    bound = [bindings[first - 1].t + 1 if first else 0, bindings[-1].t + 1 if bindings else 0]
    before, after = upper_of(bound[0], reached, bindings[:first]), upper_of(bound[1], later, bindings)
    assert before <= after
    for upper, position, seen in ((before, reached, bindings[:first]), (after, later, bindings)):
        assert all((one.end <= position) == (one.t < upper) for one in seen)


@given(histories())
def test_an_upper_of_the_bindings_that_was_read_too_early_is_only_too_low(history):
    bindings, first, _, later = history
    early = bindings[first - 1].t + 1 if first else 0
    now = bindings[-1].t + 1 if bindings else 0
    assert upper_of(early, later, bindings) <= upper_of(now, later, bindings)


# errors

SAMPLES = {int: 7, str: "x", tuple[int, int]: (1, 2), tuple[str, ...]: ("code of rendition 2",)}
ERRORS = [
    one
    for module in (errors, reader_errors, handover, settings)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, OutputError) and one is not OutputError
]


@pytest.mark.parametrize("kind", sorted(set(ERRORS), key=lambda one: one.__name__))
def test_an_error_names_pipeline_and_writer_and_survives_a_worker(kind):
    _, _, *further = (one.type for one in fields(kind))
    error = kind("orders", "accounts", *(SAMPLES[one] for one in further))
    assert str(error).startswith("orders/accounts: ")
    assert str(error).endswith((".", "accounts", "2", "7", '"'))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
