"""However files are merged and thinned out, every binding finds its own messages, in order, and no others."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.log_samples import given_binding

from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.model.manifest import LogFile, Manifest, Segment
from tidemark.log.verify import range_problems

pytestmark = pytest.mark.unit

TOPICS = ("a", "b")


@dataclass(frozen=True)
class Compacted:
    """Bindings, and what a compaction has left of them."""

    bindings: list[Binding]
    kept: set[int]
    contents: dict[str, list[int]]
    """The ids in every file."""
    manifest: Manifest


@st.composite
def compacted(draw) -> Compacted:
    bindings: list[Binding] = []
    reached: dict[TopicPartition, int] = {}
    for number in range(draw(st.integers(1, 6))):
        places = draw(st.sets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 1)), min_size=1))
        slices = []
        for place in sorted(places):
            lower, width = reached.get(place, 0), draw(st.integers(1, 5))
            slices.append((*place, lower, lower + width))
            reached[place] = lower + width
        base = bindings[-1].end + 1 if bindings else 0
        bindings.append(given_binding(1_000 * (number + 1), base, *slices, run_id=f"run-{number}"))
    end = bindings[-1].end
    kept = draw(st.sets(st.integers(0, end)))
    files, contents = [], {}
    for place in sorted(reached):
        owned = [
            (id_, binding.t)
            for binding in bindings
            if place in binding.owned
            for id_ in range(binding.owned[place][0], binding.owned[place][1] + 1)
            if id_ in kept
        ]
        while owned:
            size = draw(st.integers(1, 8))
            part, owned = owned[:size], owned[size:]
            ids = [id_ for id_, _ in part]
            path = f"{place}-{ids[0]}"
            contents[path] = ids
            files.append(LogFile(path, part[-1][1], *place, ids[0], ids[-1], len(ids), 1, "", part[0][1]))
    segment = Segment(tuple(sorted(files, key=lambda file: file.first_id)))
    segments = (segment,) if files else ()
    return Compacted(
        bindings,
        kept,
        contents,
        Manifest.of_segments("orders", segments, bindings[-1].t, end, end + 1, ("journal",)),
    )


@given(compacted())
def test_a_binding_finds_its_own_messages_in_order_and_no_others(log: Compacted):
    for binding in log.bindings:
        found = [
            id_
            for file in log.manifest.files_of(binding)
            for id_ in log.contents[file.path]
            if binding.base <= id_ <= binding.end
        ]
        assert found == sorted(log.kept & set(range(binding.base, binding.end + 1)))


@given(compacted())
def test_no_file_is_found_that_cannot_have_a_message_of_the_binding(log: Compacted):
    for binding in log.bindings:
        for file in log.manifest.files_of(binding):
            assert file.place in binding.owned
            assert file.may_have(*binding.owned[file.place])
            own = [id_ for id_ in log.contents[file.path] if binding.base <= id_ <= binding.end]
            assert len(own) <= file.most(binding.base, binding.end)


@given(compacted())
def test_such_a_log_is_right_and_comes_back_from_its_bytes(log: Compacted):
    assert list(range_problems(log.manifest, log.bindings)) == []
    assert Manifest.from_bytes(log.manifest.to_bytes()) == log.manifest
