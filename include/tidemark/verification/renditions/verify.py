"""Verifies a rendition: checks that it can be compared with the active one, compares, and makes the report.

The caller holds the leases of both, so that neither moves meanwhile. Nothing is recorded here.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.clock import Clock, wall_clock
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.output import GIVEN_UP
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.log.model.binding import Binding
from tidemark.outputs.model.evidence import ComparedSide, VerificationMode
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import RenditionState
from tidemark.pipeline.expect import Expectation, RowChange
from tidemark.pipeline.extensions import load_attribute
from tidemark.verification.renditions.comparison import Compare, Compared, Comparing, Engine
from tidemark.verification.renditions.difference import RowDifference
from tidemark.verification.renditions.errors import (
    NothingToCompare,
    RenditionBehind,
    RenditionStopped,
)
from tidemark.verification.renditions.matching import Group, RuleMatcher, Sample, explained_rows, outcomes
from tidemark.verification.renditions.report import RenditionReport, RuleLine, SampleGroup
from tidemark.writers.renditions import RenditionWriter


@dataclass(frozen=True)
class RenditionPair:
    """The rendition that is verified and the active one, as they are while both leases are held.

    Attributes:
        output: The writer's output.
        new: The rendition that is verified.
        old: The active rendition.
        new_state: Its consumer.
        old_state: The consumer of the active one.
        new_side: What evidence is about, of the rendition that is verified.
        old_side: The same of the active one.
    """

    output: Output
    new: RenditionWriter
    old: RenditionWriter
    new_state: WriterState
    old_state: WriterState
    new_side: ComparedSide
    old_side: ComparedSide

    def refuse_unready(self) -> None:
        """Raise where the rendition cannot be verified now."""
        output, number, consumer = self.output, self.new.number, self.new.consumer
        place = output.pipeline, output.writer
        refuse_unfit(output, number)
        if self.new_state.gate is not None:
            raise RenditionStopped(*place, number, consumer, self.new_state.gate.reason)
        if self.new_state.position < self.old_state.position:
            positions = self.new_state.position, self.old_state.position
            raise RenditionBehind(*place, number, consumer, *positions)

    @property
    def only_acknowledged(self) -> dict[int, tuple[int, ...]]:
        """The ids that were acknowledged for one of them only and are compared, by its number."""
        most = min(self.new_side.position, self.old_side.position)
        pairs = ((self.old_side, self.new_side), (self.new_side, self.old_side))
        found = {
            one.number: tuple(
                sorted(id_ for id_ in {*one.acknowledged} - {*other.acknowledged} if id_ <= most)
            )
            for one, other in pairs
        }
        return {number: ids for number, ids in found.items() if ids}


def refuse_unfit(output: Output, number: int) -> None:
    """Raise where a rendition is active, tainted or given up."""
    rendition = output.rendition(number)
    output.refuse_tainted(rendition)
    place = output.pipeline, output.writer, number
    if number == output.active.number:
        raise NothingToCompare(*place, "is the active one")
    if rendition.state in GIVEN_UP or rendition.state is RenditionState.SUPERSEDED:
        raise NothingToCompare(*place, f"is {rendition.state}")


def compare_pair(
    pair: RenditionPair,
    log: PublishedLog,
    positions: Positions,
    readers_since: int,
    mode: VerificationMode,
    rules: tuple[Expectation, ...],
    engine: Engine,
    clock: Clock = wall_clock,
) -> RenditionReport:
    """Compare both renditions; raises where they cannot be compared.

    Args:
        pair: Both renditions, with both leases held.
        log: The published log.
        positions: The writers of the pipeline.
        readers_since: The first time that readers may ask for.
        mode: How to compare them.
        rules: The differences that are meant; not used in mode ``exact``.
        engine: Where the pieces are computed.
        clock: The time of the report.
    """
    pair.refuse_unready()
    began, only = time.monotonic(), pair.only_acknowledged
    if mode is VerificationMode.EXACT:
        rules = ()
    matcher = RuleMatcher(rules, frozenset(id_ for ids in only.values() for id_ in ids))
    active, candidate = (pair.output.rendition(one.number) for one in (pair.old, pair.new))
    comparing = Comparing(
        pair.output.pipeline,
        pair.output.writer,
        pair.old,
        pair.new,
        log,
        positions,
        last_finished(log, min(pair.new_side.position, pair.old_side.position)),
        max(active.since, candidate.since, readers_since),
        mode,
        matcher,
        engine,
    )
    compared = compare_function(comparing)(comparing)
    if not compared.is_by_id:
        for difference in _acknowledged(pair, only, compared.tally.ids):
            matcher.judge(compared.tally, difference)
    return _report(pair, comparing, compared, only, time.monotonic() - began, clock())


def last_finished(log: PublishedLog, position: int) -> Binding | None:
    """The newest published binding that ends at or below a position."""
    return next((one for one in log.bindings.before() if one.end <= position), None)


def compare_function(comparing: Comparing) -> Compare:
    """The function that compares writers of this kind; raises ``NotComparable`` where there is none."""
    old, new = comparing.old.writer, comparing.new.writer
    if comparing.old.declared.kind != comparing.new.declared.kind:
        kinds = comparing.new.declared.kind, comparing.old.declared.kind
        raise comparing.incomparable(f"one is of kind {kinds[0]}, the other of kind {kinds[1]}")
    if new.compared_by is None or new.compared_by != old.compared_by:
        raise comparing.incomparable(f"writers of kind {comparing.new.declared.kind} have no comparison")
    found: Compare = load_attribute(new.compared_by)
    return found


def _acknowledged(
    pair: RenditionPair, only: dict[int, tuple[int, ...]], seen: set[int]
) -> Iterator[RowDifference]:
    """The ids that were acknowledged for one of the renditions, and of which no row was found to differ."""
    for number, ids in only.items():
        is_old = number == pair.old.number
        change = RowChange.ADDED if is_old else RowChange.MISSING
        for id_ in ids:
            if id_ not in seen:
                row = {"id": id_, "acknowledged": True}
                sides = (None, row) if is_old else (row, None)
                where = f"id {id_}, acknowledged for rendition {number} only"
                yield RowDifference(change, where, (), *sides)


def _report(
    pair: RenditionPair,
    comparing: Comparing,
    compared: Compared,
    only: dict[int, tuple[int, ...]],
    seconds: float,
    at: int,
) -> RenditionReport:
    tally = compared.tally
    found = outcomes(comparing.matcher.rules, tally)
    return RenditionReport(
        pair.output.pipeline,
        pair.output.writer,
        comparing.new.declared.kind,
        comparing.mode,
        comparing.t,
        at,
        pair.new_side,
        pair.old_side,
        compared.looked_at,
        {change.value: tally.changes[change] for change in RowChange if change in tally.changes},
        dict(sorted(tally.columns.items())),
        tally.total,
        explained_rows(tally, found),
        tuple(RuleLine(one.rule.told, one.rule.reason, one.matched, one.rule.at_most) for one in found),
        tuple(_groups(tally.samples)),
        only,
        compared.not_compared,
        round(seconds, 3),
    )


def _groups(samples: Mapping[tuple[Group, RowChange], Sequence[Sample]]) -> Iterator[SampleGroup]:
    for (rules, change), shown in sorted(samples.items()):
        yield SampleGroup(change.value, rules, tuple(one.said for one in shown))
