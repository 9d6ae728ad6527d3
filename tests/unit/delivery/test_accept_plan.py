"""What becomes of each writer when a loss is accepted (item 12): decided from plain values."""

import pytest

from tidemark.delivery.operator.accept_plan import Becomes, find_consequence
from tidemark.delivery.state.writer_state import TopicStart, WriterState
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.model.recreated_topics import Recreations
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.files.kind import FilesDeclaration

pytestmark = pytest.mark.unit

TOPICS = ("a", "b")
NOTHING = Recreations()


def journal(**keys: str) -> JournalDeclaration:
    return JournalDeclaration.model_validate({"name": "j", "kind": "journal", **keys}, context={})


def state(**starts: int) -> WriterState:
    known = {topic: TopicStart(number, 7) for topic, number in starts.items()}
    return WriterState("p", "j", 1, 9, {}, starts=known)


def loss(kind: LossKind, topic: str = "a") -> Loss:
    return Loss(kind, topic, 0, 5, 9, "new")


def accepted(topic: str) -> Recreations:
    return Recreations.of(
        [AcceptedLoss(loss(LossKind.RECREATED, topic), None, 4, "ann", "known", 2, 1, True)]
    )


def becomes(declared, losses, known=NOTHING, registered=None) -> tuple[Becomes, tuple[str, ...]]:
    found = find_consequence(declared, registered, losses, known, TOPICS)
    return found.becomes, found.topics


@pytest.mark.parametrize("kind", list(LossKind))
def test_writers_that_compare_no_offsets_go_on(kind) -> None:
    files = FilesDeclaration.model_validate({"name": "f", "kind": "files", "path": "/f"}, context={})
    assert becomes(files, [loss(kind)]) == (Becomes.GOES_ON, ())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LossKind.RETENTION, (Becomes.GOES_ON, ())),
        (LossKind.TRUNCATED, (Becomes.STOPS, ("a",))),
        (LossKind.RECREATED, (Becomes.LEAVES_OUT, ("a",))),
        (LossKind.DELETED, (Becomes.LEAVES_OUT, ("a",))),
    ],
)
def test_a_journal_of_two_topics(kind, expected) -> None:
    assert becomes(journal(), [loss(kind)]) == expected


def test_a_journal_that_does_not_take_the_topic_goes_on() -> None:
    assert becomes(journal(namespaces="^b$"), [loss(LossKind.RECREATED)]) == (Becomes.GOES_ON, ())


def test_a_journal_of_which_every_topic_was_made_again_by_now_stops() -> None:
    assert becomes(journal(namespaces="^a$"), [loss(LossKind.RECREATED)]) == (Becomes.STOPS, ("a",))
    both = [loss(LossKind.RECREATED), loss(LossKind.RECREATED, "b")]
    assert becomes(journal(), both) == (Becomes.STOPS, ("a", "b"))
    assert becomes(journal(), [loss(LossKind.RECREATED)], accepted("b")) == (Becomes.STOPS, ("a",))


def test_a_journal_that_began_with_a_topic_made_again_still_has_that_one() -> None:
    known, began = accepted("b"), state(b=1)
    assert becomes(journal(), [loss(LossKind.RECREATED)], known, began) == (Becomes.LEAVES_OUT, ("a",))


def test_a_journal_that_is_to_begin_with_the_new_topic_does_so() -> None:
    declared = journal(start="recreated")
    assert becomes(declared, [loss(LossKind.RECREATED)]) == (Becomes.GOES_ON, ())
