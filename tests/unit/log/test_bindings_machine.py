"""Bindings through any history: runs, publications, consumers, archiving, crashes and slow readers.

The door always gives the same consecutive bindings, and no run ever binds twice.
"""

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.archive_world import ArchiveWorld
from tests.support.fault_points import ARCHIVE
from tests.support.faults import Killed, kill_at

from tidemark.faults import AT_ONCE, VARIABLE, FaultPoint
from tidemark.log.model.binding import Binding
from tidemark.log.sweep import sweep_log
from tidemark.log.verify import LogVerifier

POINTS = (
    *ARCHIVE,
    FaultPoint.BIND_DECIDED,
    FaultPoint.BIND_COMMITTED,
    FaultPoint.PUBLISH_LISTS_WRITTEN,
    FaultPoint.PUBLISH_MANIFEST_WRITTEN,
    FaultPoint.PUBLISH_COMMITTED,
)


class BindingHistory(RuleBasedStateMachine):
    """One pipeline; every rule is one process, which may die at a fault point."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._patch = pytest.MonkeyPatch()
        self._patch.setenv(AT_ONCE, "3")
        self.world = ArchiveWorld(Path(self._folder.name))
        self.bindings: list[Binding] = []
        self.runs = 0
        self.readers: list[tuple[Iterator[Binding], int]] = []
        self.swept = 0

    def teardown(self) -> None:
        self._patch.undo()
        self._folder.cleanup()

    # What happens

    @rule(count=st.integers(1, 8), passes=st.booleans())
    def replicate(self, count: int, passes: bool) -> None:
        """Runs one after the other, until one of them dies."""
        for _ in range(count):
            try:
                binding = self._bind(f"run-{self.runs}")
                self.runs += 1
                if passes:
                    self.world.passed = max(self.world.passed, binding.end)
                self.world.publish(binding)
            except Killed:
                return

    @precondition(lambda self: self.bindings)
    @rule(data=st.data())
    def clear_a_run(self, data: st.DataObject) -> None:
        """A run that has bound, perhaps long ago, begins anew."""
        binding = data.draw(st.sampled_from(self.bindings))
        found = self.world.bind(binding.run_id)
        assert found == binding

    @rule(passed=st.integers(0, 80))
    def pass_bindings(self, passed: int) -> None:
        """The slowest consumer goes on, or is rewound."""
        self.world.passed = passed

    @rule(keep=st.sampled_from([0, 50, 100, 300]))
    def keep(self, keep: int) -> None:
        self.world.keep = keep

    @rule(point=st.sampled_from(POINTS), time=st.integers(1, 3))
    def will_die(self, point: FaultPoint, time: int) -> None:
        """The next process that reaches a point dies there."""
        self._patch.delenv(VARIABLE, raising=False)
        kill_at(self._patch, point, time)

    @rule(position=st.integers(-1, 60))
    def begin_to_read(self, position: int) -> None:
        self.readers.append((self.world.door.after(position), position))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), count=st.integers(1, 9))
    def read_on(self, data: st.DataObject, count: int) -> None:
        """A reader that began before gets the next bindings."""
        number = data.draw(st.integers(0, len(self.readers) - 1))
        reader, position = self.readers[number]
        for binding in islice(reader, count):
            assert binding == next(one for one in self.bindings if one.end > position)
            position = binding.end
        self.readers[number] = (reader, position)

    @rule()
    def sweep(self) -> None:
        self.swept += 1
        sweep_log(self.world.control, self.world.folder, f"sweep {self.swept}", 0)

    # What must hold

    @invariant()
    def the_door_gives_the_same_bindings(self) -> None:
        assert list(self.world.door.every()) == self.bindings
        assert list(self.world.door.before()) == self.bindings[::-1]

    @invariant()
    def no_run_has_two_bindings(self) -> None:
        assert len({one.run_id for one in self.bindings}) == len(self.bindings)
        for binding in self.bindings[::7]:
            assert self.world.door.of_run(binding.run_id) == binding

    @invariant()
    def lists_are_right(self) -> None:
        if self.world.control.log_head().manifest:
            verifier = LogVerifier(self.world.control, self.world.folder)
            assert list(verifier.files()) == []
            assert verifier.conclude().problems == ()

    def _bind(self, run_id: str) -> Binding:
        try:
            binding = self.world.bind(run_id)
        finally:
            self._notice()
        assert binding is not None
        return binding

    def _notice(self) -> None:
        """Add the binding that a process has committed, also one that died right after it."""
        head = self.world.control.bindings_head()
        if head.newest is not None and (not self.bindings or self.bindings[-1].t < head.newest):
            self.bindings.append(self.world.control.binding_at(head.newest))


TestBindingHistory = pytest.mark.unit(BindingHistory.TestCase)
TestBindingHistory.settings = settings(max_examples=25, stateful_step_count=25)
