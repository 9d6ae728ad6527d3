"""Policy `journal` over a topic that was made again: entities of the old and the new one are two (item 12).

Offsets and sequence numbers begin anew, so a delete or a purge of the one says nothing about the other.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from tests.support.compaction_samples import JOURNAL, Sent, compacted, given_log, sent
from tests.support.compaction_world import World
from tests.support.journal_replay import NEXT, assert_same, events_of, messages

from tidemark.compaction.compact import Compacted
from tidemark.compaction.plan import CompactionPlan
from tidemark.compaction.policies.rules import CompactionRules, question_digest
from tidemark.journal.action import Delete, Purge, append
from tidemark.log.bindings import door
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.model.recreated_topics import Recreations, topics_in_log
from tidemark.log.state.control import LogControl
from tidemark.log.state.lease import LogHold

pytestmark = pytest.mark.unit


def appended(key: str, *numbers: int) -> Sent:
    return sent(append(key, 0, events_of(numbers)))


def count_binding_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which the number of rows of every read of bindings is added."""
    read: list[int] = []
    real = LogControl.binding_rows

    def binding_rows(self: LogControl, *args: Any, **kwargs: Any) -> list[Binding]:
        rows = real(self, *args, **kwargs)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(LogControl, "binding_rows", binding_rows)
    return read


def recreate(world: World, found: int = 1) -> None:
    """The topic is made again, and accepted so."""
    head = world.control.bindings_head()
    losses = [
        Loss(LossKind.RECREATED, *place, upper, upper, "another") for place, upper in head.reached.items()
    ]
    accepted = [AcceptedLoss(one, None, world.log.end, "ann", "known", 9, found, True) for one in losses]
    world.control.record_losses(head, accepted)


def recreated_in(world: World, below: int) -> tuple[tuple[str, int], ...]:
    """The recreated topics and their first ids."""
    return tuple((topic, first_id) for topic, first_id, _ in world.questions()._recreated(below))


def given_recreated(tmp_path, *new: Sent) -> World:
    """Three messages of the old topic, then these of the new one, then two so that those are inactive."""
    world = World(tmp_path, JOURNAL)
    world.publish(appended("k", 1), appended("k", 2), appended("j", 1))
    recreate(world)
    world.publish(*new)
    world.publish(appended("z", 1))
    world.publish(appended("z", 2))
    world.move(world.log.end)
    return world


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        pytest.param(
            [appended("x", 1), appended("x", 2), sent(Purge("k", 0))],
            [0, 1, 2, 3, 4],
            id="a purge in the new one",
        ),
        pytest.param(
            [appended("x", 1), appended("x", 2), appended("x", 3), sent(Delete("k", 0, 2))],
            [0, 1, 2, 3, 4, 5, 6],
            id="a delete in the new one, at a later offset",
        ),
        pytest.param(
            [appended("k", 1), appended("k", 2), sent(Delete("k", 0, 1))],
            [0, 1, 2, 4, 5],
            id="what the new one has deleted itself",
        ),
    ],
)
def test_what_happens_in_the_new_topic_takes_nothing_of_the_old_one(tmp_path, new, kept) -> None:
    world = given_recreated(tmp_path, *new)
    world.compact()
    assert [id_ for id_ in world.ids() if id_ < 3 + len(new)] == kept


def test_without_a_topic_made_again_the_digest_of_a_question_is_what_it_was() -> None:
    rules = CompactionRules(JOURNAL, 10, 1)
    assert "recreated" not in rules.to_row()
    assert question_digest("p", (), rules) != question_digest("p", (), replace(rules, recreated=(("a", 3),)))


def test_a_plan_keeps_which_topics_were_made_again(tmp_path) -> None:
    world = given_recreated(tmp_path, appended("k", 1), sent(Delete("k", 0, 1)), appended("k", 2))
    plan = world.compaction().look()
    assert plan.rules.recreated == (("orders", 3),)
    assert CompactionPlan.from_bytes(plan.to_bytes()).rules == plan.rules


def test_of_a_recreation_only_the_bindings_up_to_the_new_topics_first_are_read(tmp_path, monkeypatch) -> None:
    world = given_recreated(tmp_path, appended("k", 1))
    monkeypatch.setattr(door, "PAGE", 2)
    for _ in range(40):
        world.publish(appended("z", 3))
    world.move(world.log.end)
    read = count_binding_reads(monkeypatch)
    assert recreated_in(world, world.log.end) == (("orders", 3),)
    backwards = sum(read)
    read.clear()
    list(Bindings(world.control, world.folder).every())
    assert backwards < sum(read) * 0.6


def test_a_topic_made_again_twice_begins_where_all_bindings_say_it_does(tmp_path) -> None:
    world = given_recreated(tmp_path, appended("k", 1))
    recreate(world, found=2)
    recreate(world, found=3)
    world.publish(appended("k", 1))
    recreations = Recreations.of(world.control.accepted_losses())
    every = topics_in_log(Bindings(world.control, world.folder).every(), recreations)
    expected = tuple((one.topic, one.first_id) for one in every if one.number)
    assert recreated_in(world, world.log.end + 1) == expected == (("orders", 3), ("orders", 6))


def test_the_swap_of_a_compaction_reads_no_bindings_but_those_at_positions(tmp_path, monkeypatch) -> None:
    world = given_recreated(tmp_path, appended("k", 1), appended("k", 2), sent(Delete("k", 0, 1)))
    counted: list[int] = []
    real = LogHold.replace_log

    def replace_log(self, rebase, *further):
        reads = count_binding_reads(monkeypatch)
        found = real(self, rebase, *further)
        counted.append(sum(reads))
        return found

    monkeypatch.setattr(LogHold, "replace_log", replace_log)
    assert isinstance(world.compact(), Compacted)
    assert counted == [2]  # the page with the binding after the position of the one writer


@settings(max_examples=150, deadline=None)
@given(messages(most=8), messages(most=8))
def test_replaying_what_is_left_of_either_topic_gives_what_replaying_it_whole_gives(old, new) -> None:
    """Each topic into tables of its own, as the old journal and one with `start: recreated` have it."""
    again = [replace(one, offset=number) for number, one in enumerate(new)]
    log = given_log([*old, *again], [NEXT], per_file=5)
    begins, end = len(old), log.manifest.end
    left = compacted(log, JOURNAL, end, recreated=(("orders", begins),)).rows()
    for is_old in (True, False):
        own = [row for row in log.rows() if (row["id"] < begins) == is_old]
        kept = [row for row in left if (row["id"] < begins) == is_old]
        assert_same(own, kept, end, 3)
