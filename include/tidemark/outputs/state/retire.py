"""Removal of a rendition that no reader needs: its times, its consumer, its place.

The order of the steps is what makes it safe. First ``since`` is raised, which fails while a reader holds one
of its times, and refuses readers that come later. Then its state is ``retiring``, from which nothing leads
back. Only then its consumer ends and its place is dropped. Every step looks for what is done already: a run
that was killed, another run, or two at once come to the same end. Which place may be dropped at all
(``--drop-tables``, other pipelines) is decided by the caller.
"""

from typing import Protocol

from tidemark.consensus.update import ReadAgain, retry_outpaced
from tidemark.faults import FaultPoint, reach
from tidemark.outputs.errors import NotForgotten, TransitionRefused
from tidemark.outputs.model.lifecycle import begin_retire, mark_dropped, refuse_unsigned
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState, Signature
from tidemark.outputs.model.retention import forget_times_of, may_drop_place
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.reader_store import ReaderStore


class RenditionRemoval(Protocol):
    """Removes what a rendition has outside of the output. Both methods are idempotent, and two processes may
    call them at once."""

    def end_consumer(self, rendition: Rendition) -> None:
        """Take the lease of its consumer for good and make it a tombstone. When this returns, no process
        writes to the place any more."""

    def drop_place(self, rendition: Rendition) -> None:
        """Drop the place, as far as the operator has allowed it."""


def retire(
    store: OutputStore, readers: ReaderStore, number: int, removal: RenditionRemoval, signed: Signature
) -> Output:
    """Remove a rendition; returns the output as it is then.

    Raises ``StillActive``, ``StillNeeded`` where a reader holds its times, and ``TransitionRefused`` where it
    was neither superseded, abandoned nor tainted. Then no place was dropped.
    """
    begin_retirement(store, readers, number, signed)
    return finish_retirement(store, number, removal)


def begin_retirement(store: OutputStore, readers: ReaderStore, number: int, signed: Signature) -> Output:
    """Take a rendition out of use for good. Nothing is removed yet."""

    def attempt(output: Output) -> Output:
        refuse_unsigned(output, signed, "retire")
        if output.rendition(number).state in GONE:
            return output
        since = _forget(readers, output, number)
        reach(FaultPoint.RETIRE_SINCE_RAISED)
        try:
            retiring = store.change(lambda found: begin_retire(found, number, since, signed))
        except NotForgotten:  # it was active again meanwhile, so there are more times to forget
            raise ReadAgain from None
        reach(FaultPoint.RETIRE_RETIRING)
        return retiring

    return retry_outpaced(store.require, attempt)


def finish_retirement(store: OutputStore, number: int, removal: RenditionRemoval) -> Output:
    """End the consumer of a retiring rendition, drop its place, and record that both are gone."""
    output = store.require()
    rendition = output.rendition(number)
    if rendition.state is RenditionState.DROPPED:
        return output
    if not may_drop_place(output, number):
        wanted = RenditionState.DROPPED
        raise TransitionRefused(output.pipeline, output.writer, number, rendition.state, wanted)
    removal.end_consumer(rendition)
    reach(FaultPoint.RETIRE_TOMBSTONED)
    removal.drop_place(rendition)
    reach(FaultPoint.RETIRE_PLACE_DROPPED)
    output = store.change(lambda found: mark_dropped(found, number))
    reach(FaultPoint.RETIRE_DROPPED)
    return output


def _forget(readers: ReaderStore, output: Output, number: int) -> int:
    """``since``, raised to the end of a rendition's use."""
    return readers.change(lambda known, now: forget_times_of(known, output, number, now)).since
