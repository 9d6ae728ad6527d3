"""A run over several renditions: what it is told about them, what it waits for, and the build of one."""

import json
from shutil import rmtree
from typing import Any

import pytest
from tests.support.rendition_world import CONNECTIONS, WRITER, RenditionWorld

from tidemark.app import open_pipeline
from tidemark.app.build import Build, BuildStopped, refuse_stopped
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cli.output.tables import status_table
from tidemark.clock import SECOND
from tidemark.delivery.deliver import Delivered
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.renditions.build_progress import estimated_end
from tidemark.delivery.renditions.selection import resolved_name
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.delivery.status import read_status
from tidemark.outputs.errors import UnknownRendition

pytestmark = pytest.mark.unit

GOOD = [b'{"a": 1}', b'{"a": 2}']
PICKED = {"transforms": [{"pick": {"fields": ["a"]}}]}


@pytest.fixture
def world(tmp_path) -> RenditionWorld:
    """Two messages are delivered to the first rendition, and a second one is declared."""
    world = RenditionWorld(tmp_path)
    world.publish(orders=GOOD)
    world.run()
    world.keys = PICKED
    world.declare()
    return world


@pytest.fixture
def opened(world, monkeypatch) -> OpenPipeline:
    monkeypatch.setattr(open_pipeline.control_plane, "look_at_control", lambda connections: world.consensus)
    return OpenPipeline(world.pipeline, CONNECTIONS)


# Names


def test_a_command_reaches_every_rendition_by_its_name(world, opened):
    world.run()
    assert [opened.writer(name).name for name in ("archive", "archive.r1", "archive.r2")] == [
        "archive",
        "archive",
        "archive.r2",
    ]
    opened.plan_stop("archive.r2").execute(world.deed("stop"))
    assert (opened.stopped(), opened.state("archive.r2").gate is not None) == ({}, True)
    opened.plan_open("archive.r2").execute(world.deed("open"))
    world.hand_over()
    assert [opened.writer(name).name for name in ("archive", "archive.r1")] == ["archive.r2", "archive"]
    opened.plan_stop("archive").execute(world.deed("stop"))
    assert (list(opened.stopped()), opened.state("archive.r1").gate) == (["archive"], None)
    assert "tidemark gate open orders archive.r2" in opened.advice("archive").sentence


def test_advice_about_a_rendition_that_is_not_active_names_it(world, opened):
    world.run()
    world.hand_over()
    opened.plan_stop("archive.r1").execute(world.deed("stop"))
    assert "tidemark gate open orders archive.r1" in opened.advice("archive.r1").sentence


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("archive.r7", UnknownRendition, "there is no rendition 7"),
        ("attic", NotPossible, "there is no such writer; there is: archive"),
        ("attic.r2", NotPossible, "there is no such writer; there is: archive"),
        ("archive.r0", NotPossible, "there is no such writer; there is: archive"),
    ],
)
def test_a_name_that_there_is_not_is_refused(opened, name, error, said):
    with pytest.raises(error, match=said):
        opened.writer(name)


def test_a_writer_is_forgotten_with_all_its_renditions(world):
    world.run()
    (plan,) = [world.operator.forget(WRITER, [])]
    assert plan.lines[-1] == "so are those of archive.r2"
    plan.execute(world.deed("forget"))
    assert (world.positions.load("archive"), world.positions.load("archive.r2")) == (None, None)
    world.publish(orders=GOOD)
    for name in ("archive", "archive.r2"):
        rmtree(world.root / name)
    world.run()
    assert [one.number for one in world.found.renditions] == [1]


def test_a_rendition_alone_is_not_forgotten(world):
    world.run()
    with pytest.raises(NotPossible, match="name it without a number"):
        world.operator.forget("archive.r2", [])
    assert world.positions.load("archive.r2") is not None


# What differs


def test_what_differs_is_one_sentence_with_the_next_step(opened):
    (said,) = opened.differences()
    assert "orders/archive: the file differs from the active rendition" in said
    assert said.endswith("tidemark renditions build orders archive")


# Status


def status_of(world: RenditionWorld) -> dict[str, Any]:
    (writer,) = read_status(world.pipeline, world.consensus).to_dict()["writers"]
    return json.loads(json.dumps(writer))


def test_the_status_shows_every_rendition(world):
    world.publish(orders=GOOD)
    before = status_of(world)
    first, second = before["renditions"]
    assert (before["position"], before["lag"], before["gate"]) == (1, 2, "open")
    assert (first["number"], first["state"], first["position"], first["lag"]) == (1, "active", 1, 2)
    assert (second["number"], second["state"], second["place"]) == (
        2,
        "building",
        str(world.root / "archive.r2"),
    )
    assert second["progress"] == {
        "bindings_left": 2,
        "ids_done": 0,
        "ids_left": 4,
        "estimated_end": None,
    }
    assert (first["progress"], first["soak_until"], second["gate"]) == (None, None, "open")
    assert before["differs"] == first["differs"] != []
    assert second["differs"] == []
    world.run()
    after = status_of(world)["renditions"]
    assert [one["upper"] for one in after] == [world.control.bindings_head().upper] * 2


def test_the_status_is_that_of_the_active_rendition_after_a_handover(world):
    world.run()
    at = world.hand_over().signed.at
    shown = status_of(world)
    first, second = shown["renditions"]
    assert (shown["differs"], first["state"], second["state"]) == ([], "superseded", "active")
    assert first["soak_until"] == at + 24 * 3600 * SECOND
    assert (first["consumer"], second["consumer"]) == ("archive.r1", "archive.r2")


def test_the_table_has_a_line_for_each_rendition_and_for_what_differs(world):
    from rich.console import Console

    console = Console(width=300)
    with console.capture() as shown:
        console.print(status_table(read_status(world.pipeline, world.consensus)))
    text = shown.get()
    assert "archive differs in the file, and goes on as it is: transforms was" in text
    assert "archive.r2: building in" in text
    assert "1 bindings left" in text


# The build


def build_of(world: RenditionWorld, **options: Any) -> Build:
    return Build("archive.r2", world.log, world.positions, patience=0.3, **options)


def deliver_once(world: RenditionWorld) -> Any:
    def deliver(log: Any) -> Delivered:
        consumer = world.consumers.one("archive.r2", log)
        assert consumer is not None
        return world.deliver_one(consumer, log, "build")

    return deliver


def test_a_build_goes_on_until_the_end_of_the_log_that_grows_meanwhile(world):
    world.limits = {"max_records_per_run": 1}
    deliver, late = deliver_once(world), [GOOD]

    def deliver_and_publish(log):
        if late:
            world.publish(orders=late.pop())
        return deliver(log)

    done = build_of(world).until_caught_up(deliver_and_publish)
    assert (done.position, done.total.written) == (3, 4)


def test_a_build_that_another_process_does_waits_for_it(world):
    world.run()
    world.publish(orders=GOOD)
    state = world.positions.load("archive.r2")
    take(world.positions, state, "another", world.clock)
    with pytest.raises(LeaseHeld, match="another has this writer"):
        build_of(world).until_caught_up(deliver_once(world))


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ({"gate": {"reason": "id 4 is no JSON."}}, "it stopped at id 3: id 4 is no JSON"),
        ({"failure": "no answer"}, "it stopped at id 3: no answer"),
        ({"ended": True}, "its rendition was retired or given up"),
        ({"left_to": "orders.follow run"}, r"orders\.follow run delivers to it"),
    ],
)
def test_a_build_that_did_not_come_to_its_end_fails_with_the_next_step(outcome, said):
    whole = {"gate": None, "failure": None, "ended": False, "left_to": None, "position": 3}
    with pytest.raises(BuildStopped, match=f"orders/archive.r2: {said}|{said}.*gate show"):
        refuse_stopped("orders", "archive.r2", {**whole, **outcome})
    refuse_stopped("orders", "archive.r2", whole)


def entry(position: int, at: int, kind: OffsetEntryKind = OffsetEntryKind.COMMIT) -> OffsetEntry:
    return OffsetEntry(kind, position, at, "run")


def test_the_end_of_a_build_is_estimated_from_its_newest_commits():
    assert estimated_end([entry(0, 1_000), entry(10, 2_000)], 20) == 4_000
    assert estimated_end([entry(0, 1_000)], 20) is None
    assert estimated_end([entry(9, 1_000), entry(3, 2_000, OffsetEntryKind.REWIND)], 20) is None
    assert estimated_end([entry(0, 1_000), entry(10, 2_000)], 0) is None


def test_a_name_without_an_output_means_the_first_rendition(world):
    assert resolved_name(world.positions, "nothing") == "nothing"
