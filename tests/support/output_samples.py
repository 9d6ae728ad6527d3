"""Outputs, readers and collections in one line each: what the tests of renditions start from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidemark.outputs.model.capability import Capability, Readers
from tidemark.outputs.model.evidence import ComparedSide, Taint, VerificationEvidence, VerificationMode
from tidemark.outputs.model.handover import ConsumerStanding, advance_frontier, hand_over
from tidemark.outputs.model.lifecycle import RenditionProposal, declare, mark_verified
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature
from tidemark.outputs.model.updates import RowCounts, RowUpdate, accumulate

PIPELINE, WRITER = "orders", "accounts"
OPERATOR = Signature("ann", "carol is a test account", 1)
TAINT = Taint(60, 0, "1:a71c", "1:09fe", {"rules": "v1"}, {"rules": "v2"})


def signed(at: int) -> Signature:
    """A signature that no other step has."""
    return Signature("ann", "a reason", at)


def given_output(frontier: int = 0, since: int = 0) -> Output:
    """The output of a writer with one rendition, readable before ``frontier``."""
    first = Rendition(1, RenditionState.ACTIVE, {"shards": 8}, "accounts", since, OPERATOR)
    return advance_frontier(Output.first(PIPELINE, WRITER, first), 1, frontier)


def proposal(number: int, since: int = 0, place: str | None = None, **settings: object) -> RenditionProposal:
    """What rendition ``number`` is to be; its settings differ from those of every other number."""
    where = place or f"accounts_r{number}"
    return RenditionProposal(settings or {"shards": 8 + number}, where, since, signed(number))


def given_building(frontier: int = 50, since: int = 0) -> Output:
    """An output whose rendition 2 is being built."""
    return declare(given_output(frontier), proposal(2, since))


def sides(number: int = 2, active: int = 1, position: int = 99) -> tuple[ComparedSide, ComparedSide]:
    """Two renditions at the same position."""
    return ComparedSide(number, position, (7,), {"rules": "v2"}), ComparedSide(active, position)


def evidence(number: int = 2, active: int = 1, position: int = 99, t: int = 40) -> VerificationEvidence:
    """A clean verification."""
    return VerificationEvidence(VerificationMode.EXACT, t, *sides(number, active, position))


def given_verified(frontier: int = 50) -> Output:
    """An output whose rendition 2 is verified."""
    return mark_verified(given_building(frontier), 2, evidence())


def open_at(upper: int) -> ConsumerStanding:
    """A consumer with an open gate."""
    return ConsumerStanding(upper, is_gate_open=True)


def given_handed_over(h: int = 50, upper: int = 70) -> Output:
    """An output with a handover from rendition 1 to rendition 2 at ``h``."""
    return hand_over(given_verified(h), 2, open_at(upper), sides(), OPERATOR)


def given_readers(since: int = 0, deadline: int | None = None, **capabilities: int) -> Readers:
    """Readers by their ids, with the times that they hold."""
    held = {name: Capability(name, t, deadline, "a test") for name, t in capabilities.items()}
    return Readers(PIPELINE, WRITER, since, held)


def updates_of(table: Mapping[int, Mapping[str, int]]) -> list[RowUpdate]:
    """Updates from a table like those of the worked examples: rows with their counts, by time."""
    return [RowUpdate(row, t, diff) for t, rows in table.items() for row, diff in rows.items()]


@dataclass
class RowsInMemory:
    """The updates of every rendition, by number. A dropped one has no entry, so asking for it fails."""

    held: dict[int, list[RowUpdate]] = field(default_factory=dict)

    def state(self, rendition: Rendition, at: int) -> RowCounts:
        return accumulate(self.held[rendition.number], at)

    def updates(self, rendition: Rendition, first: int, end: int) -> Iterable[RowUpdate]:
        found = (one for one in self.held[rendition.number] if first <= one.t < end)
        return sorted(found, key=lambda one: one.t)
