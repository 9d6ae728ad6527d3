"""What can be proved: where an incarnation begins, and what was lost since."""

from dataclasses import replace

import pytest

from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.verification.journal.provable import Ground, Unprovable

pytestmark = pytest.mark.unit

PLACE = ("orders", 0)
AFTER = 50
"""The id behind which something was lost."""


def lost(kind: LossKind, lower: int, upper: int, partition: int = 0) -> AcceptedLoss:
    return AcceptedLoss(Loss(kind, "orders", partition, lower, upper), None, AFTER, "ann", "known", 0)


def objection(
    start: int, begins_at: int | None, *losses: AcceptedLoss, position: int = 100
) -> Unprovable | None:
    ground = Ground.of({PLACE: start, ("orders", 1): 0, ("refunds", 0): 0}, losses, position)
    return ground.objection(PLACE, begins_at)


@pytest.mark.parametrize(
    ("start", "begins_at", "expected"),
    [
        (0, None, None),
        (0, 7, None),
        (5, 7, None),
        (5, None, Unprovable.BEFORE_THE_LOG),
    ],
    ids=["all is in the log", "begins there", "begins there, though others do not", "began before"],
)
def test_what_begins_in_the_log_is_provable(
    start: int, begins_at: int | None, expected: Unprovable | None
) -> None:
    assert objection(start, begins_at) is expected


@pytest.mark.parametrize(
    ("begins_at", "expected"),
    [(None, Unprovable.OFFSETS_LOST), (9, Unprovable.OFFSETS_LOST), (20, None), (30, None)],
    ids=["anywhere", "before the loss", "right behind it", "later"],
)
def test_what_has_a_loss_since_it_began_is_not(begins_at: int | None, expected: Unprovable | None) -> None:
    assert objection(0, begins_at, lost(LossKind.RETENTION, 10, 20)) is expected


def test_a_loss_of_another_partition_or_beyond_the_position_does_not_matter() -> None:
    assert objection(0, None, lost(LossKind.RETENTION, 10, 20, partition=1)) is None
    assert objection(0, None, lost(LossKind.RETENTION, 10, 20), position=AFTER) is None


@pytest.mark.parametrize("kind", [LossKind.RECREATED, LossKind.DELETED])
def test_what_a_topic_held_that_was_made_again_stays_provable_unless_bound_offsets_were_lost(
    kind: LossKind,
) -> None:
    assert objection(0, None, lost(kind, 40, 40)) is None
    assert objection(0, None, lost(kind, 40, 43)) is Unprovable.OFFSETS_LOST
    assert objection(0, None, lost(kind, 40, 43, partition=1)) is None


def test_a_partition_that_was_cut_is_not_provable() -> None:
    assert objection(0, 60, lost(LossKind.TRUNCATED, 40, 50)) is Unprovable.BEGUN_ANEW
    assert objection(0, 60, lost(LossKind.TRUNCATED, 40, 50, partition=1)) is None


def test_a_partition_that_was_never_bound_began_before_the_log() -> None:
    assert Ground.of({}, (), 10).objection(PLACE, None) is Unprovable.BEFORE_THE_LOG


@pytest.mark.parametrize(
    ("begins_at", "expected"),
    [(None, Unprovable.COMPACTED), (9, Unprovable.COMPACTED), (10, None), (30, None)],
    ids=["anywhere", "below", "right there", "later"],
)
def test_what_was_compacted_beyond_proof_is_not_judged(
    begins_at: int | None, expected: Unprovable | None
) -> None:
    ground = replace(Ground.of({PLACE: 0, ("orders", 1): 0}, (), 100), compacted={PLACE: 10})
    assert ground.objection(PLACE, begins_at) is expected
    assert ground.objection(("orders", 1), begins_at) is None


@pytest.mark.parametrize(
    ("begins_at", "expected"),
    [(None, Unprovable.TAKEN_OVER), (9, Unprovable.TAKEN_OVER), (20, None)],
    ids=["anywhere", "before their pointer", "behind it"],
)
def test_i18_what_another_replicator_may_have_written_is_not_provable(
    begins_at: int | None, expected: Unprovable | None
) -> None:
    """Item 18: dates that it wrote come from its own clock, and would be called different."""
    ground = replace(Ground.of({PLACE: 0}, (), 100), taken_over={PLACE: 20})
    assert ground.objection(PLACE, begins_at) is expected
