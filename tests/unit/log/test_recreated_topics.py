"""Of several topics that had the same name: which one a binding, an id and a loss are of (item 12)."""

import pytest
from tests.support.log_samples import given_binding

from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.model.recreated_topics import Recreations, TopicInLog, topics_in_log

pytestmark = pytest.mark.unit


def lost(
    kind: LossKind, after: int, found: int, *, t: int | None = None, partition: int = 0, topic: str = "orders"
) -> AcceptedLoss:
    return AcceptedLoss(Loss(kind, topic, partition, 5, 5), t, after, "ann", "known", found + 1, found, True)


def binding(t: int, base: int, topic_id: str, *slices: tuple[str, int, int, int]) -> Binding:
    return given_binding(t, base, *slices, run_id=f"run-{t}", topic_ids={"orders": topic_id, "refunds": "r"})


OLD = binding(1_000, 0, "old", ("orders", 0, 0, 5), ("orders", 1, 0, 5), ("refunds", 0, 0, 5))
NEW = binding(2_000, 15, "new", ("orders", 0, 0, 3), ("refunds", 0, 5, 6))
NEWER = binding(3_000, 19, "new", ("orders", 0, 3, 4))


def test_where_nothing_was_made_again_every_binding_is_of_the_first_topic() -> None:
    found = Recreations.of([lost(LossKind.RETENTION, 14, 10), lost(LossKind.TRUNCATED, 14, 11)])
    assert not found
    assert (found.number_in("orders", NEW), found.newest("orders")) == (0, 0)


def test_bindings_after_an_acceptance_are_of_the_new_topic_and_others_topics_are_not_concerned() -> None:
    found = Recreations.of([lost(LossKind.RECREATED, 14, 10, partition=p) for p in (0, 1)])
    assert [found.number_in("orders", one) for one in (OLD, NEW, NEWER)] == [0, 1, 1]
    assert found.number_in("refunds", NEW) == 0
    assert list(topics_in_log([OLD, NEW, NEWER], found)) == [
        TopicInLog("orders", 0, "old", 0, 9),
        TopicInLog("refunds", 0, "r", 10, 18),
        TopicInLog("orders", 1, "new", 15, 19),
    ]


def test_offsets_that_were_bound_and_lost_are_still_the_old_topics() -> None:
    lost_inside = [lost(LossKind.DELETED, after, 10, t=NEW.t, partition=p) for p, after in ((0, 14), (1, 16))]
    found = Recreations.of(lost_inside)
    assert [found.number_in("orders", one) for one in (OLD, NEW, NEWER)] == [0, 0, 1]


def test_made_again_twice_there_are_three_topics() -> None:
    found = Recreations.of([lost(LossKind.RECREATED, 14, 10), lost(LossKind.RECREATED, 18, 20)])
    assert [found.number_in("orders", one) for one in (OLD, NEW, NEWER)] == [0, 1, 2]
    assert (found.newest("orders"), found.since("orders", 2).accepted.found) == (2, 20)


def test_made_again_twice_before_anything_was_bound_the_next_binding_is_of_the_last() -> None:
    found = Recreations.of([lost(LossKind.RECREATED, 14, 10), lost(LossKind.RECREATED, 14, 20)])
    assert [one.number for one in topics_in_log([OLD, NEW], found) if one.topic == "orders"] == [0, 2]


def test_a_loss_is_the_topics_that_had_the_name_then() -> None:
    made_again = lost(LossKind.RECREATED, 14, 10)
    before, after = lost(LossKind.RETENTION, 9, 5), lost(LossKind.RETENTION, 14, 15)
    found = Recreations.of([before, made_again, after])
    assert [found.number_of(one) for one in (before, made_again, after)] == [0, 0, 1]


def test_losses_of_old_versions_are_told_by_their_place() -> None:
    made_again = lost(LossKind.RECREATED, 14, 0)
    found = Recreations.of([made_again])
    assert [found.number_of(lost(LossKind.RETENTION, after, 0)) for after in (9, 14, 18)] == [0, 0, 1]
