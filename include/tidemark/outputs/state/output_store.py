"""The output of a writer in the control plane, changed by compare-and-set only.

Every change is one of the pure functions of ``outputs.model``, which is applied to the output as it is and
committed at the version it was read at; where another process was faster, it is applied again. This module
has no rules of its own.
"""

from collections.abc import Callable
from typing import TypeVar

from tidemark.consensus.objects import Change, Consensus, ObjectKey, ObjectKind, Snapshot
from tidemark.consensus.update import update
from tidemark.faults import FaultPoint, reach
from tidemark.outputs.errors import CreatedOtherwise, OutputMissing
from tidemark.outputs.model.lifecycle import RenditionProposal, refuse_unsigned
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.model.rows import HEAD, changed_rows, frontier_of, output_from_rows, output_rows
from tidemark.outputs.settings import changed_settings

Answer = TypeVar("Answer")


class OutputStore:
    """The output of one writer."""

    def __init__(self, consensus: Consensus, pipeline: str, writer: str) -> None:
        self.consensus, self.pipeline, self.writer = consensus, pipeline, writer

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(ObjectKind.OUTPUT, f"{self.pipeline}/{self.writer}")

    def load(self) -> Output | None:
        """The output as it is now; None before its first rendition."""
        return self._output(self.consensus.whole(self.key))

    def require(self) -> Output:
        """The output as it is now; raises ``OutputMissing`` before its first rendition."""
        return self._required(self.load())

    def frontier(self) -> int:
        """The frontier, or one of a moment ago: cheap, for readers that wait. Raises ``OutputMissing``."""
        rows = self.consensus.committed(self.key, [HEAD]).rows
        if HEAD not in rows:
            raise OutputMissing(self.pipeline, self.writer)
        return frontier_of(rows[HEAD])

    def create(self, first: RenditionProposal) -> Output:
        """Create the output with its first rendition, which readers use from its ``since`` on.

        An output that exists is returned as it is. Raises ``CreatedOtherwise`` where its first rendition has
        other settings, another place or other code: so call it only where ``load`` found none.
        """

        def decide(snapshot: Snapshot) -> tuple[Change | None, Output]:
            if (found := self._output(snapshot)) is not None:
                self._refuse_other(found.rendition(1), first)
                return None, found
            made = first.rendition(1, RenditionState.ACTIVE)
            output = Output.first(self.pipeline, self.writer, made)
            refuse_unsigned(output, first.signed, "build")
            return Change(output_rows(output)), output

        output = update(self.consensus, self.key, None, decide)
        reach(FaultPoint.RENDITION_CREATED)
        return output

    def remove(self, seen: Output) -> None:
        """Remove the output of a forgotten writer, if it is still as it was seen: its name begins anew."""

        def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
            is_same = self._output(snapshot) == seen
            return (Change(deletes=list(snapshot.rows)) if is_same else None), None

        update(self.consensus, self.key, None, decide)
        reach(FaultPoint.OUTPUT_FORGOTTEN)

    def change(self, decide: Callable[[Output], Output]) -> Output:
        """Commit what ``decide`` makes of the output; returns the output as it is then. See ``amend``."""

        def attempt(output: Output) -> tuple[Output, Output]:
            after = decide(output)
            return after, after

        return self.amend(attempt)

    def amend(self, decide: Callable[[Output], tuple[Output, Answer]]) -> Answer:
        """Commit the output that ``decide`` returns, and return its answer.

        ``decide`` may read other objects: what it has read is older than the commit. It is called once for
        each version that is read, and an error that it raises leaves the output unchanged. Only rows that
        differ are written; where none does, nothing is committed.
        """

        def attempt(snapshot: Snapshot) -> tuple[Change | None, Answer]:
            before = self._required(self._output(snapshot))
            after, answer = decide(before)
            puts = changed_rows(output_rows(before), output_rows(after))
            return Change(puts) if puts else None, answer

        return update(self.consensus, self.key, None, attempt)

    def _output(self, snapshot: Snapshot) -> Output | None:
        return output_from_rows(self.pipeline, self.writer, snapshot.rows) if snapshot.rows else None

    def _required(self, found: Output | None) -> Output:
        if found is None:
            raise OutputMissing(self.pipeline, self.writer)
        return found

    def _refuse_other(self, found: Rendition, first: RenditionProposal) -> None:
        before = {"settings": found.settings, "code": found.code, "place": found.place}
        now = {"settings": first.settings, "code": first.code, "place": first.place}
        if changes := changed_settings(before, now):
            raise CreatedOtherwise(self.pipeline, self.writer, tuple(map(str, changes)))
