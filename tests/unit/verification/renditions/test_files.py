"""Two renditions of files: their messages by id, whatever the names and formats of the files."""

from dataclasses import replace

import pytest
from tests.support.compared_renditions import given_comparing, said
from tests.support.pipeline_world import PipelineWorld

from tidemark.delivery.published_log import read_messages
from tidemark.delivery.writer import Part
from tidemark.pipeline.expect import RowChange
from tidemark.verification.renditions.errors import NotComparable
from tidemark.verification.renditions.files import compare_files
from tidemark.verification.renditions.messages import paired
from tidemark.verification.renditions.verify import compare_function
from tidemark.writers.files.writer import FilesWriter
from tidemark.writers.kafka.kind import KafkaDeclaration

pytestmark = pytest.mark.unit

FORMATS = ["parquet", "jsonl"]
RENAMED = [{"rename": {"fields": {"owner": "name"}}}]
SKIPPED = [{"skip": {"field": "test", "operator": "==", "match": False}}]


@pytest.fixture
def world(tmp_path):
    world = PipelineWorld(tmp_path)
    world.publish(orders=[b'{"owner": "ann", "test": false}', b'{"owner": "bob", "test": true}'])
    world.publish(orders=[None, b'{"owner": "cat", "test": false}'])
    return world


def given_both(world, old=None, new=None):
    """Both renditions, delivered to."""
    writers = [world.files_writer(**(old or {})), world.files_writer("archive_r2", **(new or {}))]
    for one in writers:
        world.deliver(one)
    return writers


@pytest.mark.parametrize("old", FORMATS)
@pytest.mark.parametrize("new", FORMATS)
def test_files_of_any_format_with_the_same_messages_are_the_same(world, old, new):
    both = given_both(world, {"format": old}, {"format": new})
    found = compare_files(given_comparing(world, *both))
    assert (found.tally.total, found.looked_at) == (0, {"messages": 4, "bindings": 2})


@pytest.mark.parametrize("new", FORMATS)
def test_fields_of_values_are_compared_one_by_one(world, new):
    both = given_both(world, None, {"format": new, "transforms": RENAMED})
    found = compare_files(given_comparing(world, *both))
    assert found.tally.columns == {"value.owner": 3, "value.name": 3}
    assert said(found)[0] == "id 0: value.name null → ann, value.owner ann → null"
    rules = {"column": "value.owner", "where": "new.value.owner == null"}, {"column": "value.name"}
    assert compare_files(given_comparing(world, *both, *rules)).tally.unexplained == 0


def test_a_filter_makes_messages_missing(world):
    both = given_both(world, None, {"transforms": SKIPPED})
    found = compare_files(given_comparing(world, *both, {"rows": "missing", "where": "value.test == true"}))
    assert (found.tally.changes, found.tally.unexplained) == ({RowChange.MISSING: 1}, 0)


def test_the_messages_of_a_file_that_is_gone_are_missing(world):
    both = given_both(world)
    (first, _) = sorted((world.root / "archive_r2").glob("*.parquet"))
    first.unlink()
    found = compare_files(given_comparing(world, *both))
    assert found.tally.changes == {RowChange.MISSING: 2}


def test_a_file_that_cannot_be_read_ends_the_comparison(world):
    both = given_both(world)
    (first, _) = sorted((world.root / "archive_r2").glob("*.parquet"))
    first.write_bytes(b"torn")
    with pytest.raises(NotComparable, match="cannot be read"):
        compare_files(given_comparing(world, *both))


def test_a_message_that_was_redelivered_is_in_a_file_of_its_own_and_counts(world):
    old = world.files_writer()
    new = world.files_writer("archive_r2", transforms=SKIPPED)
    for one in (old, new):
        world.deliver(one)
    whole = world.files_writer("archive_r2")  # as if the filter had been another
    (message,) = [one for one in messages_of(world) if one["id"] == 1]
    whole.redeliver(message, {}, NoLease())
    assert compare_files(given_comparing(world, old, new, {"rows": "added"})).tally.total == 0


class NoLease:
    def check(self) -> None:
        """Always held."""


def messages_of(world):
    """All messages of the log."""
    for binding, files in world.log.waiting(-1):
        for batch in read_messages(world.log.folder, Part(binding, tuple(files)), ()):
            yield from batch.to_pylist()


def test_bindings_that_only_one_has_finished_are_not_compared(world):
    both = given_both(world)
    world.publish(orders=[b"{}"])
    world.deliver(both[1])
    found = compare_files(given_comparing(world, *both))
    assert (found.tally.total, found.looked_at["bindings"]) == (0, 2)


def test_bindings_before_the_first_time_of_a_rendition_are_not_compared(world):
    both = given_both(world)
    for path in (world.root / "archive_r2").glob("*-00000000000000000001.parquet"):
        path.unlink()
    assert compare_files(given_comparing(world, *both)).tally.total == 2
    assert compare_files(given_comparing(world, *both, since=2_000)).tally.total == 0


def test_renditions_of_other_kinds_cannot_be_compared(world):
    comparing = given_comparing(world, *given_both(world))
    declared = KafkaDeclaration.model_validate(
        {"name": "archive", "kind": "kafka", "topic": "copies"}, context={}
    )
    other = replace(comparing, new=replace(comparing.new, declared=declared))
    with pytest.raises(NotComparable, match="one is of kind kafka, the other of kind files"):
        compare_function(other)


def test_writers_without_a_comparison_cannot_be_compared(world):
    class Strange(FilesWriter):
        compared_by = None

    comparing = given_comparing(world, *given_both(world))
    strange = Strange("orders", comparing.new.declared)
    with pytest.raises(NotComparable, match="writers of kind files have no comparison"):
        compare_function(replace(comparing, new=replace(comparing.new, writer=strange)))


def test_progress_is_shown(world):
    for _ in range(120):
        world.publish(orders="a")
    both = given_both(world)
    compare_files(given_comparing(world, *both))
    assert world.shown == [f"{n} of 3 groups of bindings compared" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ([], [], []),
        ([1, 3], [2], [(1, None), (None, 2), (3, None)]),
        ([1, 2], [2, 3], [(1, None), (2, 2), (None, 3)]),
    ],
)
def test_messages_are_paired_by_their_ids(old, new, pairs):
    streams = ([{"id": id_} for id_ in ids] for ids in (old, new))
    assert [(one and one["id"], other and other["id"]) for one, other in paired(*streams)] == pairs
