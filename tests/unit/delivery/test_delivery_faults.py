"""A delivery dies between any two durable writes, and the next run makes it what it would have been.

Here with consensus in memory and files on disk; the system tests kill real processes. What may differ after a
death: how many entries the offset log has, times, versions, who held the writer and what is staged. What may
not: the outputs byte by byte, positions, where the offset log ends, namespaces, gates, what was acknowledged,
the dead letters and how often people did what.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from tests.support.clocks import TickingClock
from tests.support.consensus import MortalConsensus, copy_of
from tests.support.fault_points import DELIVER
from tests.support.faults import Killed
from tests.support.memory_letters import NoLetterTable
from tests.support.pipeline_world import PipelineWorld, plain

from tidemark.consensus.lease import LEASE
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.dead_letters.listing import LetterBox
from tidemark.delivery.dead_letters.redelivery import Redelivery
from tidemark.delivery.operator.action_plan import ChangedMeanwhile, NotPossible
from tidemark.delivery.state.lease import LeaseLost
from tidemark.faults import FaultPoint
from tidemark.writers.files.writer import FilesWriter

pytestmark = pytest.mark.unit

GOOD, BAD = b'{"n": 1}', b"no json"
LOGS = {
    "good": [{"orders": [GOOD, b"-", GOOD], "refunds": [GOOD, GOOD]}] * 3,
    "bad": [
        {"orders": [GOOD, GOOD]},
        {"orders": [GOOD, GOOD, BAD, GOOD], "refunds": [GOOD, GOOD]},
        {"orders": [GOOD]},
    ],
}
"""What is published, binding by binding."""


class Logs:
    """Published logs, each made once: they never change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: dict[str, MemoryConsensus] = {}

    def copy_to(self, name: str, root: Path) -> MemoryConsensus:
        """Put a log into a world; what the control plane knows of it."""
        if name not in self._made:
            world = PipelineWorld(self._root / name)
            for topics in LOGS[name]:
                world.publish(**topics)
            self._made[name] = world.consensus
        copytree(self._root / name, root)
        return copy_of(self._made[name])


class World(PipelineWorld):
    """One pipeline with a files writer whose transform does not understand everything."""

    def __init__(self, root: Path, published: MemoryConsensus) -> None:
        super().__init__(root, MortalConsensus(published), TickingClock())

    @property
    def archive(self) -> FilesWriter:
        return self.files_writer(format="jsonl", transforms=[{"omit": {"fields": ["x"]}}])

    def break_target(self) -> None:
        (self.root / "archive").write_text("a file where the folder should be")

    def mend_target(self) -> None:
        (self.root / "archive").unlink()

    def run(self, holder: str = "run") -> None:
        """What ``replicate`` does for the writer."""
        self.deliver(self.archive, holder)

    def go_on(self, holder: str = "run") -> None:
        """What ``resume`` does, without ever going in bulk."""
        self.resume(self.archive, holder)

    def go_on_in_bulk(self, holder: str = "run") -> None:
        self.resume(self.archive, holder, singly=2)

    def let_pass(self, _: str = "") -> None:
        """What a person does about the bad message: look, and acknowledge it if that is still needed."""
        with suppress(NotPossible):
            self.acknowledge(self.archive, 4)

    def let_rest_pass(self, _: str = "") -> None:
        with suppress(NotPossible):
            self.acknowledge(self.archive, 4, 7)

    def go_back(self, _: str = "") -> None:
        if self.position(self.archive) > 1:
            self.rewind("archive", 1)

    def redeliver(self, _: str = "") -> None:
        """What an operator does about a healthy message that was let pass with the bad one."""
        letter = LetterBox(self.positions, self.letters, NoLetterTable()).letter("archive", 5)
        with suppress(NotPossible):
            plan = Redelivery(self.positions, self.log, self.clock).plan(self.archive, letter)
            plan.execute(self.deed("redeliver"))

    def die(self) -> None:
        self.consensus.die()

    def live_again(self) -> None:
        self.consensus = self.consensus.of_next_process()

    def outcome(self) -> dict[str, Any]:
        """Everything that can be told from outside."""
        state, history = self.state(self.archive), self.positions.history("archive")
        letters = sorted((self.root / "log" / "dead_letters").rglob("*.json"))
        return {
            "files": self.output(),
            "position": state.position,
            "gate": plain(state.gate),
            "end": (history[-1].kind, history[-1].position) if history else None,
            "namespaces": self.positions.namespaces("archive"),
            "acknowledged": self.positions.acknowledged("archive"),
            "letters": [{**json.loads(path.read_text()), "at": 0} for path in letters],
            "deeds": [(deed.what, deed.who) for deed in self.positions.deeds("archive")],
            "redelivered": sorted(self.positions.redelivered("archive")),
            "begun": [row for row in self.rows(self.archive) if row.startswith("redelivering/")],
        }


def given_passed(world: World) -> None:
    """The bad message and the healthy ones behind it were let pass; the rest is delivered."""
    world.run()
    world.let_rest_pass()
    world.run()


def given_unresumed(world: World) -> None:
    """The target was broken when the first binding came, and is not any more; two more bindings wait."""
    world.break_target()
    world.run()
    world.mend_target()


@dataclass(frozen=True)
class Walk:
    """One step, and where it dies."""

    log: str
    step: Callable[[World, str], None]
    points: dict[FaultPoint, int]
    """How often the step comes to each of its points."""
    given: Callable[[World], None] = lambda world: None
    after: Callable[[World], None] = lambda world: None

    def whole(self, world: World) -> dict[str, Any]:
        """What comes of it without a crash."""
        self.given(world)
        self.step(world, "run")
        self.after(world)
        return world.outcome()


ACKNOWLEDGE = (
    FaultPoint.ACKNOWLEDGE_COPIED,
    FaultPoint.ACKNOWLEDGE_RECORDED,
    FaultPoint.ACKNOWLEDGE_SETTLED,
    FaultPoint.ACKNOWLEDGE_COMMITTED,
)
WALKS = {
    "deliver": Walk(
        "good",
        World.run,
        {
            FaultPoint.REGISTER_ENROLLED: 1,
            FaultPoint.REGISTER_REGISTERED: 1,
            FaultPoint.FILE_NAMED: 3,
            FaultPoint.FILE_RECORDED: 3,
            FaultPoint.DELIVER_PARTS_WRITTEN: 3,
            FaultPoint.DELIVER_FINISHED: 3,
            FaultPoint.DELIVER_SETTLED: 3,
            FaultPoint.DELIVER_COMMITTED: 3,
        },
    ),
    "stop": Walk(
        "bad",
        World.run,
        {
            FaultPoint.DELIVER_PARTS_WRITTEN: 2,
            FaultPoint.DELIVER_SETTLED: 2,
            FaultPoint.DELIVER_STOPPED: 1,
        },
    ),
    "resume": Walk(
        "good",
        World.go_on,
        {
            FaultPoint.RESUME_WRITTEN: 4,
            FaultPoint.RESUME_COMMITTED: 4,
            FaultPoint.FILE_NAMED: 1,
            FaultPoint.FILE_RECORDED: 1,
            FaultPoint.DELIVER_FINISHED: 1,
            FaultPoint.DELIVER_SETTLED: 3,
            FaultPoint.RESUME_OPENED: 1,
        },
        given_unresumed,
        World.run,
    ),
    "resume in bulk": Walk(
        "good",
        World.go_on_in_bulk,
        {
            FaultPoint.RESUME_WRITTEN: 2,
            FaultPoint.RESUME_COMMITTED: 3,
            FaultPoint.DELIVER_PARTS_WRITTEN: 1,
            FaultPoint.DELIVER_FINISHED: 1,
            FaultPoint.DELIVER_SETTLED: 3,
            FaultPoint.DELIVER_COMMITTED: 1,
            FaultPoint.RESUME_OPENED: 1,
        },
        given_unresumed,
        World.run,
    ),
    "acknowledge": Walk(
        "bad",
        World.let_pass,
        dict.fromkeys(ACKNOWLEDGE, 1),
        World.run,
        World.go_on,
    ),
    "acknowledge all": Walk(
        "bad",
        World.let_rest_pass,
        dict.fromkeys(ACKNOWLEDGE, 1),
        World.run,
        World.run,
    ),
    "redeliver": Walk(
        "bad",
        World.redeliver,
        {
            FaultPoint.REDELIVER_MARKED: 1,
            FaultPoint.REDELIVER_WRITTEN: 1,
            FaultPoint.REDELIVER_RECORDED: 1,
        },
        given_passed,
    ),
    "rewind": Walk(
        "good",
        World.go_back,
        {FaultPoint.REWIND_ANNOUNCED: 1, FaultPoint.REWIND_COMMITTED: 1},
        World.run,
        World.run,
    ),
}
WALKED = [
    pytest.param(name, point, time, id=f"{name}: {point}, time {time}")
    for name, walk in WALKS.items()
    for point, times in walk.points.items()
    for time in range(1, times + 1)
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return Logs(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, logs: Logs) -> Callable[[str], dict[str, Any]]:
    """What comes of a walk without a crash."""

    @cache
    def outcome(name: str) -> dict[str, Any]:
        root = tmp_path_factory.mktemp("whole") / "world"
        return WALKS[name].whole(World(root, logs.copy_to(WALKS[name].log, root)))

    return outcome


@pytest.fixture
def world(tmp_path: Path, logs: Logs, request: pytest.FixtureRequest) -> World:
    """The world of the walk that the test is about, with everything that comes before it."""
    walk = WALKS[request.getfixturevalue("name")]
    world = World(tmp_path / "world", logs.copy_to(walk.log, tmp_path / "world"))
    walk.given(world)
    return world


@pytest.mark.parametrize("again", ["run", "another run"], ids=["the same run again", "another run"])
@pytest.mark.parametrize(("name", "point", "time"), WALKED)
def test_what_was_killed_is_finished_by_the_next(world, whole, at_point, name, point, time, again):
    at_point(point, world.die, time)
    with pytest.raises(Killed):
        WALKS[name].step(world, "run")
    world.live_again()
    if again != "run":
        world.clock.now += LEASE

    WALKS[name].step(world, again)
    WALKS[name].after(world)

    assert world.outcome() == whole(name)


@pytest.mark.parametrize("other", ["run", "another run"], ids=["the same holder", "another holder"])
@pytest.mark.parametrize(("name", "point", "time"), WALKED)
def test_two_at_once_end_like_one(world, whole, at_point, name, point, time, other):
    """The first is paused, the second does everything, and then the first goes on as if it were alone."""
    paused = []

    def overtake() -> None:
        paused.append(point)
        if other != "run":
            world.clock.now += LEASE
        WALKS[name].step(world, other)

    at_point(point, overtake, time)
    with suppress(LeaseLost, ChangedMeanwhile):
        WALKS[name].step(world, "run")
    WALKS[name].after(world)

    assert (paused, world.outcome()) == ([point], whole(name))


@pytest.mark.parametrize("name", ["deliver"])
@pytest.mark.parametrize("point", sorted({*WALKS["deliver"].points} - {FaultPoint.REGISTER_REGISTERED}))
def test_what_a_killed_run_has_written_is_not_acknowledged_away(world, at_point, point, name):
    """The file has the message, whether the commit has come or not; a file without it would be another."""
    at_point(point, world.die)
    with pytest.raises(Killed):
        world.run()
    world.live_again()
    world.clock.now += LEASE
    with pytest.raises(NotPossible):
        world.acknowledge(world.archive, 0)
    world.run()
    assert (world.position(world.archive), world.gate(world.archive)) == (world.log.end, None)


def test_every_point_of_a_delivery_is_walked():
    assert {point for walk in WALKS.values() for point in walk.points} == set(DELIVER)
