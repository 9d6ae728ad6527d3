"""What a forgotten pipeline has left in a target is never taken for that of the next one of its name."""

from pathlib import Path

import pytest
from tests.support.faults import Killed
from tests.support.memory_letters import CountedLetters
from tests.support.pipeline_world import PipelineWorld
from tests.support.recreated_world import World

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.operator.forget_pipeline import PipelineForgetting
from tidemark.delivery.state.earlier_pipelines import Earlier
from tidemark.delivery.target import LeftByForgotten
from tidemark.faults import FaultPoint
from tidemark.log.state.control import BindingsHead
from tidemark.log.state.forgotten import EndedRemoval, forgettings

pytestmark = pytest.mark.unit


def forget_pipeline(world: PipelineWorld) -> None:
    """``tidemark pipelines forget``, a minute later."""
    world.clock.pass_seconds(60)
    forgetting = PipelineForgetting(world.consensus, "orders", CountedLetters(), clock=world.clock)
    forgetting.plan().execute(world.deed("forget"))
    world.clock.pass_seconds(60)


def made_again(world: PipelineWorld, root: Path) -> PipelineWorld:
    """A pipeline of the same name, with a log of its own."""
    again = PipelineWorld(root / "again", world.consensus, world.clock)
    again.publish(orders="xyz")
    return again


# The rule


@pytest.mark.parametrize(
    ("deeds", "forgotten_at", "had_writer"),
    [
        ([], [5], False),
        ([("stop", 4)], [], False),
        ([("forget", 4)], [], False),
        ([("forget", 4)], [5], True),
        ([("forget", 6)], [5], False),
        ([("forget pipeline", 5)], [5], True),
        ([("forget pipeline", 5), ("forget", 6)], [5], False),
        ([("forget pipeline", 5), ("forget", 6)], [5, 7], True),
    ],
    ids=[
        "never there",
        "never forgotten",
        "forgotten alone",
        "forgotten before its pipeline",
        "forgotten alone, of the pipeline there is",
        "forgotten with its pipeline",
        "registered again, and forgotten alone",
        "and its pipeline after it",
    ],
)
def test_a_writer_was_an_earlier_pipeline_s_where_that_was_forgotten_after_it(
    deeds, forgotten_at, had_writer
):
    forgettings = [EndedRemoval(at) for at in forgotten_at]
    kept = [AuditEntry(what, "ann", "moved", at) for what, at in deeds]
    assert Earlier.of(forgettings, kept, BindingsHead()).had_writer is had_writer


# Files


@pytest.fixture
def archived(tmp_path) -> PipelineWorld:
    """Ids 0 to 2 are in a file."""
    world = PipelineWorld(tmp_path)
    world.publish(orders="abc")
    world.deliver(world.files_writer(format="jsonl"))
    return world


def archive_of(archived: PipelineWorld, again: PipelineWorld, **keys: str):
    """The writer of the new pipeline, with the old one's path."""
    return again.files_writer(**{"format": "jsonl", "path": str(archived.root / "archive")} | keys)


def test_files_of_a_forgotten_pipeline_and_new_ones_never_mix(archived, tmp_path):
    # given
    forget_pipeline(archived)
    again = made_again(archived, tmp_path)
    before = archived.output()
    # when
    with pytest.raises(LeftByForgotten, match=r"has 1 files .* Move them away, or .* another path") as no:
        again.deliver(archive_of(archived, again))
    # then
    assert no.value.needs_person
    assert again.positions.load("archive") is None
    assert archived.output() == before


def test_files_that_were_moved_away_and_those_of_another_format_are_in_nothing_s_way(archived, tmp_path):
    # given
    forget_pipeline(archived)
    again = made_again(archived, tmp_path)
    # when: one has another format, the other another path
    other = archive_of(archived, again, format="parquet")
    assert again.deliver(other).position == 2
    again.positions.forget(again.state(other), again.deed("forget"))
    for path in (archived.root / "archive").glob("*.jsonl"):
        path.unlink()
    # then
    assert again.deliver(archive_of(archived, again)).position == 2


def test_files_of_a_writer_that_was_forgotten_alone_are_its_own(archived):
    # given
    writer = archive_of(archived, archived)
    archived.positions.forget(archived.state(writer), archived.deed("forget"))
    # when, then
    assert archived.deliver(writer).position == 2


# A journal


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A pipeline whose journal has two messages of ``orders``."""
    world = World(tmp_path / "first", monkeypatch)
    world.produce("orders", "ab")
    world.run()
    assert world.seems_well()
    return world


def run_again(world: World, root: Path) -> list[str]:
    """The first run of a pipeline of the same name, with new outputs but the same keyspace; what failed."""
    world.root = root / "second"
    world.recreate("copy", 2)
    world.produce("orders", "abcabcabc")
    world.run()
    return world.failed


def test_a_topic_made_again_between_two_pipelines_never_meets_the_old_one_s_pointers(world, tmp_path):
    # given
    forget_pipeline(world)
    world.recreate("orders", 2)
    before = world.journal.pointers
    # when
    failed = run_again(world, tmp_path)
    # then
    (said,) = failed
    assert "wrote of another topic orders: that was deleted and made again since" in said
    assert said.endswith("Give the writer a keyspace of its own.")
    assert world.positions.load("journal") is None
    assert world.journal.pointers == before


def test_a_topic_made_again_while_the_earlier_pipeline_lived_is_another_one_too(world, tmp_path):
    # given: its journal went on without what was made again
    world.recreate("orders", 2)
    world.produce("orders", "ca")
    world.run()
    world.accept()
    world.run()
    forget_pipeline(world)
    # when, then
    assert "wrote of another topic orders" in run_again(world, tmp_path)[0]


def test_the_same_topic_goes_on_in_the_same_keyspace(world, tmp_path):
    # given
    forget_pipeline(world)
    # when
    failed = run_again(world, tmp_path)
    # then
    assert failed == []
    assert list(world.differences()) == []


def test_a_keyspace_of_its_own_takes_the_topic_that_was_made_again_and_stays_its_own(world, tmp_path):
    # given
    forget_pipeline(world)
    world.recreate("orders", 2)
    world.drop_tables()  # as a new keyspace is
    assert run_again(world, tmp_path) == []
    # when: its writer alone is forgotten, and added again
    world.positions.forget(world.state(world.journal_writer), world.deed("forget"))
    world.run()
    # then
    assert world.failed == []
    assert list(world.differences()) == []


def test_ids_of_topics_that_an_older_version_did_not_keep_are_not_asked_for():
    forgotten = EndedRemoval(9)
    head = BindingsHead(reached={("orders", 0): 3}, topic_ids={"orders": "new"})
    assert not Earlier.of([forgotten], [], head).had_another(("orders", 0), made=5)


@pytest.mark.parametrize("point", [FaultPoint.PIPELINE_MARKED, FaultPoint.PIPELINE_BINDINGS_FORGOTTEN])
def test_a_removal_that_dies_keeps_the_ids_of_the_topics_for_the_one_that_ends_it(world, kill_at, point):
    # given
    ids = world.control.bindings_head().topic_ids
    kill_at(point)
    with pytest.raises(Killed):
        forget_pipeline(world)
    # when: the same command again, which takes the log's files too
    forgetting = PipelineForgetting(world.consensus, "orders", CountedLetters(), clock=world.clock)
    forgetting.plan(with_log=True).execute(world.deed("forget"))
    # then
    assert [one.topic_ids for one in forgettings(world.control)] == [ids]
