"""What a forgotten pipeline has left in a target is never taken for that of the next one of its name."""

from pathlib import Path

import pytest
from tests.unit.delivery.samples import House
from tests.unit.delivery.test_forget_pipeline import MemoryLetters

from tidemark.delivery.earlier import Earlier
from tidemark.delivery.forget_pipeline import PipelineForgetting
from tidemark.delivery.target import LeftByForgotten
from tidemark.delivery.writer_state import Deed
from tidemark.log.control import Decision

pytestmark = pytest.mark.unit


def forget_pipeline(house: House) -> None:
    """``tidemark pipelines forget``, a minute later."""
    house.clock.pass_seconds(60)
    forgetting = PipelineForgetting(house.consensus, "orders", MemoryLetters(), clock=house.clock)
    forgetting.plan().execute(house.deed("forget"))
    house.clock.pass_seconds(60)


def made_again(house: House, root: Path) -> House:
    """A pipeline of the same name, with a log of its own."""
    again = House(root / "again", house.consensus, house.clock)
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
    forgettings = [Decision("forget", "ann", "moved", at, "with its files") for at in forgotten_at]
    kept = [Deed(what, "ann", "moved", at) for what, at in deeds]
    assert Earlier.of(forgettings, kept).had_writer is had_writer


# Files


@pytest.fixture
def archived(house) -> House:
    """Ids 0 to 2 are in a file."""
    house.publish(orders="abc")
    house.deliver(house.files_writer(format="jsonl"))
    return house


def archive_of(archived: House, again: House, **keys: str):
    """The writer of the new pipeline, with the old one's path."""
    return again.files_writer(**{"format": "jsonl", "path": str(archived.root / "archive")} | keys)


def test_files_of_a_forgotten_pipeline_and_new_ones_never_mix(archived, tmp_path):
    # given
    forget_pipeline(archived)
    again = made_again(archived, tmp_path)
    before = archived.output()
    # when
    with pytest.raises(LeftByForgotten, match="has 1 files .* Move them away, or give .* another path") as no:
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
