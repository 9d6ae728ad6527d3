"""The commit log dies between any two durable writes, and the next run makes it what it would have been.

Here with consensus in memory and files on disk; ``tests/system/test_log_faults.py`` kills real processes.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.fault_points import ACCEPT, ACCEPT_PLAN, REPLICATE
from tests.support.faults import Killed
from tests.support.log_samples import SEGMENT_BYTES, RowsEngine, given_messages
from tests.support.log_world import LogWorld

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKey, ObjectKind
from tidemark.faults import FaultPoint
from tidemark.log.accept import NothingToAccept, accept, accept_plan, require_closed_gate, unplanned_losses
from tidemark.log.bind import OffsetsLost, bind
from tidemark.log.capture import capture
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Available, Binding, Offsets, Slice
from tidemark.log.model.gate import LogStopped
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.publish import publish, read_log

pytestmark = pytest.mark.unit

NOW, LIMIT = 1_000_000, 100
MET = Judgement("keys", "expect_keys", "critical", True, "")
NOT_MET = replace(MET, success=False, detail="a key is missing", ids=(1, 2))


@dataclass
class World(LogWorld):
    """Kafka, a control plane and a folder."""

    root: Path
    consensus: MemoryConsensus = field(default_factory=MemoryConsensus)
    records: dict[int, dict[int, bytes]] = field(
        default_factory=lambda: {0: {0: b"a", 1: b"b", 2: b"c"}, 1: {0: b"x", 1: b"y"}}
    )
    judgement: Judgement = MET

    @property
    def available(self) -> Available:
        offsets = {
            ("orders", number): Offsets(min(held), max(held) + 1) for number, held in self.records.items()
        }
        return Available(offsets, {"orders": "id-1"})

    def replicate(self, run_id: str) -> None:
        """One run, from bind to publish."""
        binding = bind(self.control, self.available, LIMIT, NOW, run_id)
        if binding is not None:
            engine = RowsEngine(self.messages, [self.judgement])
            capture(self.control, self.folder, binding, engine, lambda _: self.available, NOW)
            publish(self.control, self.folder, binding, SEGMENT_BYTES, NOW)

    def accept(self, _: str) -> None:
        """What a person does about a closed gate."""
        acceptance = AuditEntry("accept", "ann", "known", NOW)
        accept(self.control, require_closed_gate(self.control), acceptance)

    def state(self) -> dict[str, Any]:
        """Everything durable that a later reader can tell.

        Left out: the names of the runs, and up to when there was nothing new.
        """
        bindings = self.consensus.scan(ObjectKey(ObjectKind.BINDINGS, "orders"), "").rows
        rows: dict[str, Any] = {name: body for name, body in bindings.items() if name.startswith("lost/")}
        rows |= {
            name: replace(Binding.from_json(body), run_id="")
            for name, body in bindings.items()
            if name.startswith("t/")
        }
        rows["head"] = replace(self.control.bindings_head(), upper=0, version=0)
        files = {
            str(path.relative_to(self.root)): sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }
        log = read_log(self.control, self.folder)
        return {"bindings": rows, "files": files, "log": log, "gate": self.control.log_gate()}

    def messages(self, binding: Binding, s: Slice) -> list[pa.RecordBatch]:
        values = {offset: self.records[s.partition][offset] for offset in range(s.lower, s.upper)}
        return [given_messages(binding, s.topic, s.partition, values)]


def given_lost_offsets(world: World) -> None:
    """Published once; then Kafka has dropped offsets 3 and 4 of partition 0 before they were read."""
    world.replicate("first")
    world.records[0] = {5: b"f", 6: b"g"}


def expected_after(root: Path, *steps: Callable[[World], None]) -> dict[str, Any]:
    world = World(root)
    for step in steps:
        step(world)
    return world.state()


# Replicate


@pytest.mark.parametrize("again", ["killed", "other"], ids=["the same run again", "another run"])
@pytest.mark.parametrize("point", REPLICATE)
def test_a_run_that_was_killed_is_finished_by_the_next(tmp_path, kill_at, point, again):
    world = World(tmp_path / "killed")
    kill_at(point)
    with pytest.raises(Killed):
        world.replicate("killed")

    world.replicate(again)

    assert world.state() == expected_after(tmp_path / "whole", lambda w: w.replicate("whole"))


@pytest.mark.parametrize("point", REPLICATE)
def test_two_runs_at_once_end_like_one(tmp_path, at_point, point):
    world = World(tmp_path / "two")
    at_point(point, lambda: world.replicate("overtaking"))

    world.replicate("slow")

    assert world.state() == expected_after(tmp_path / "one", lambda w: w.replicate("one"))


@pytest.mark.parametrize("files_left", [0, 1])
def test_a_run_whose_staged_files_were_swept_takes_what_the_other_has_captured(tmp_path, files_left):
    world = World(tmp_path / "two")

    class OvertakenEngine(RowsEngine):
        def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
            count = super().write_records(binding, slices, area)
            staged = {path: path.read_bytes() for path in sorted(Path(area).iterdir())}
            world.replicate("overtaking")
            for path in list(staged)[:files_left]:  # a sweep in progress: some of its files are left
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(staged[path])
            return count

    binding = bind(world.control, world.available, LIMIT, NOW, "slow")
    capture(
        world.control,
        world.folder,
        binding,
        OvertakenEngine(world.messages, [world.judgement]),
        lambda _: world.available,
        NOW,
    )
    publish(world.control, world.folder, binding, SEGMENT_BYTES, NOW)

    assert world.state() == expected_after(tmp_path / "one", lambda w: w.replicate("one"))


@pytest.mark.parametrize("point", REPLICATE)
def test_what_comes_after_a_killed_run_goes_on_behind_it(tmp_path, kill_at, point):
    world = World(tmp_path / "killed")
    kill_at(point)
    with pytest.raises(Killed):
        world.replicate("killed")
    world.replicate("next")
    world.records[1][2] = b"z"

    world.replicate("later")

    def more(whole: World) -> None:
        whole.records[1][2] = b"z"

    whole = expected_after(
        tmp_path / "whole", lambda w: w.replicate("one"), more, lambda w: w.replicate("two")
    )
    assert world.state() == whole


# A closed gate


@pytest.mark.parametrize("point", ACCEPT)
def test_a_loss_is_accepted_once_whichever_process_dies(tmp_path, kill_at, point):
    world = World(tmp_path / "killed")
    given_lost_offsets(world)
    kill_at(point)
    for _ in range(2):
        with suppress(OffsetsLost, Killed):
            world.replicate("lost")
        with suppress(NothingToAccept, Killed):
            world.accept("ann")

    world.replicate("after")

    def lose(whole: World) -> None:
        given_lost_offsets(whole)
        with pytest.raises(OffsetsLost):
            whole.replicate("lost")

    whole = expected_after(
        tmp_path / "whole", lose, lambda w: w.accept("ann"), lambda w: w.replicate("after")
    )
    assert world.state() == whole


@pytest.mark.parametrize("point", [FaultPoint.GATE_CLOSED, FaultPoint.ACCEPT_OPENED])
def test_a_failed_audit_stays_closed_until_it_is_accepted_whichever_process_dies(tmp_path, kill_at, point):
    world = World(tmp_path, judgement=NOT_MET)
    kill_at(point)
    with pytest.raises((LogStopped, Killed)):
        world.replicate("bad")
    assert world.control.log_gate().ids == (1, 2)
    try:
        world.accept("ann")
    except Killed:
        with pytest.raises(NothingToAccept):
            world.accept("ann")

    world.replicate("after")

    assert (world.control.log_head().end, world.control.log_gate()) == (4, None)


@pytest.mark.parametrize("point", ACCEPT_PLAN)
def test_what_becomes_of_the_writers_is_accepted_whichever_process_dies(tmp_path, kill_at, point):
    world = World(tmp_path)
    world.replicate("first")
    old = AcceptedLoss(Loss(LossKind.RECREATED, "orders", 0, 3, 3, "id-2"), None, 4, "ann", "known", 1, 1)
    world.control.record_losses(world.control.bindings_head(), [old])
    bob = AuditEntry("accept", "bob", "seen", NOW)
    kill_at(point)
    with pytest.raises(Killed):
        accept_plan(world.control, bob)
    assert unplanned_losses(world.control) == [old]
    accept_plan(world.control, bob)
    assert unplanned_losses(world.control) == []
    assert world.control.accepted_losses() == [
        replace(old, who="bob", reason="seen", at=NOW, is_planned=True)
    ]
    assert {(one.who, one.reason) for one in world.control.decisions()} == {("bob", "seen")}
