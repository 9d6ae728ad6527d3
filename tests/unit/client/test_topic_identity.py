"""A topic that was made again under its name is not read and not appended to (item 2)."""

from collections.abc import Callable, Collection, Sequence

import pytest
from tests.support.journal_samples import TOPIC
from tests.support.log_samples import add_binding, given_binding
from tests.support.memory_client import World

from tidemark.client.errors import (
    NotSent,
    PointerBeyondEnd,
    TablesUnreadable,
    TopicRecreated,
    TopicUnconfirmed,
)
from tidemark.client.events import Event
from tidemark.client.journal import Journal
from tidemark.client.settings import declare
from tidemark.client.topic_identity import (
    ASKED_AGAIN_AFTER,
    SENT_WITHIN,
    KnownTopic,
    TopicContradiction,
    TopicGuard,
    contradiction,
)
from tidemark.client.topic_record import known_topics
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.state.positions import Positions
from tidemark.log.accept import accept
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

OLD, NEW = "old-id", "new-id"


# What contradicts an id


@pytest.mark.parametrize(
    ("seen", "known", "found"),
    [
        (None, [], None),
        (None, None, None),
        (NEW, None, None),
        (OLD, [], None),
        (OLD, None, TopicContradiction(None, OLD, False)),
        (None, [KnownTopic("p", NEW)], None),
        (None, [KnownTopic("p", None)], None),
        (None, [KnownTopic("p", OLD)], TopicContradiction("p", OLD, False)),
        (NEW, [KnownTopic("p", OLD)], TopicContradiction("p", OLD, False)),
        (None, [KnownTopic("p", NEW, OLD)], TopicContradiction("p", OLD, True)),
        (None, [KnownTopic("p", None, OLD)], TopicContradiction("p", OLD, True)),
        (None, [KnownTopic("p", NEW), KnownTopic("q", OLD)], TopicContradiction("q", OLD, False)),
    ],
)
def test_what_contradicts_an_id(seen, known, found) -> None:
    assert contradiction(NEW, seen, known) == found


# A journal with a guard


class Place:
    """Kafka's ids and the control plane's, as a test sets them, and a clock."""

    def __init__(self, known: Sequence[KnownTopic] | None = ()) -> None:
        self.id: str | None = OLD
        self.bound = known
        self.now = 0.0
        self.asked, self.looked = 0, 0
        self.broken: Exception | None = None
        self.silent: Exception | None = None

    def ask(self, key: str) -> Callable[[], str | None]:
        self.asked += 1

        def answer() -> str | None:
            if self.broken:
                raise self.broken
            return self.id

        return answer

    def close(self) -> None:
        self.asked = -1

    def known(self, key: str) -> Sequence[KnownTopic] | None:
        self.looked += 1
        if self.silent:
            raise self.silent
        return self.bound

    def journal(self, world: World) -> Journal:
        return world.client(guard=TopicGuard(TOPIC, "journal", self, self, lambda: self.now))


@pytest.fixture
def world() -> World:
    world = World("A1,2 A3")
    world.replicate()
    return world


def made_again(place: Place, world: World) -> None:
    """Another topic of the name, with more records than the old one had."""
    place.id = NEW
    world.records.clear()
    world.send_words("M M M M M")


def test_the_topic_that_was_bound_is_read_and_appended_to(world: World) -> None:
    journal = Place([KnownTopic("orders", OLD)]).journal(world)
    assert [event.seq_nr for event in journal.read("k")] == [1, 2, 3]
    assert journal.pointer("k") == 3
    journal.append("k", [Event.text(4, "x")])
    assert journal.pointer("k") == 4


USES = {
    "read": lambda journal: list(journal.read("k")),
    "pointer": lambda journal: journal.pointer("k"),
    "append": lambda journal: journal.append("k", [Event.text(1, "x")]),
    "delete": lambda journal: journal.delete("k", 1),
    "purge": lambda journal: journal.purge("k"),
    "mark": lambda journal: journal.mark("k"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_another_topic_of_the_name_is_refused(world: World, use) -> None:
    place = Place([KnownTopic("orders", OLD)])
    made_again(place, world)
    with pytest.raises(TopicRecreated) as raised:
        use(place.journal(world))
    error = raised.value
    assert (error.topic, error.key, error.pipeline, error.known, error.found) == (
        TOPIC,
        "k",
        "orders",
        OLD,
        NEW,
    )
    assert OLD in str(error)
    assert NEW in str(error)
    assert "tidemark log accept orders" in str(error)
    assert not [r for r in range(len(world.records)) if type(world.action(r)).__name__ != "Mark"]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_topic_that_is_made_again_while_a_client_lives_is_noticed(world: World, use) -> None:
    place = Place([KnownTopic("orders", OLD)])
    journal = place.journal(world)
    USES["read"](journal)
    journal.append("k", [Event.text(4, "x")])
    made_again(place, world)
    place.now += SENT_WITHIN
    with pytest.raises(TopicRecreated):
        use(journal)


def test_a_read_says_that_the_topic_is_another_one_before_anything_else_that_follows_from_it(
    world: World,
) -> None:
    place = Place([KnownTopic("orders", OLD)])
    journal = place.journal(world)
    place.id = NEW
    world.records.clear()  # the pointer is beyond its end now
    with pytest.raises(PointerBeyondEnd):
        world.read()
    with pytest.raises(TopicRecreated):
        list(journal.read("k"))


def test_when_the_loss_is_accepted_the_tables_are_still_the_old_topics(world: World) -> None:
    place = Place([KnownTopic("orders", NEW, OLD)])
    made_again(place, world)
    with pytest.raises(TopicRecreated) as raised:
        list(place.journal(world).read("k"))
    assert raised.value.is_accepted
    assert "log accept" not in str(raised.value)
    assert "keyspace of its own" in str(raised.value)


def test_without_a_control_plane_a_client_goes_by_what_it_saw_first(world: World) -> None:
    place = Place(None)
    journal = place.journal(world)
    journal.append("k", [Event.text(4, "x")])
    made_again(place, world)
    with pytest.raises(TopicRecreated) as raised:
        list(journal.read("k"))
    assert (raised.value.pipeline, raised.value.known, raised.value.found) == (None, OLD, NEW)


def test_a_topic_that_no_pipeline_has_bound_may_be_made_again(world: World) -> None:
    place = Place([])
    journal = World("A1").client(guard=TopicGuard(TOPIC, "journal", place, place))
    assert journal.pointer("k") == 1
    place.id = NEW
    assert journal.pointer("k") == 1


def test_kafka_without_ids_is_not_asked_for_more(world: World) -> None:
    place = Place([KnownTopic("orders", OLD)])
    place.id = None
    assert place.journal(world).pointer("k") == 3
    assert place.looked == 0


# What it costs


def test_the_control_plane_is_asked_once_and_kafka_once_for_appends_that_follow_each_other(
    world: World,
) -> None:
    place = Place([KnownTopic("orders", OLD)])
    journal = place.journal(world)
    for number in range(4, 14):
        journal.append("k", [Event.text(number, "x")])
        place.now += SENT_WITHIN / 20
    assert (place.asked, place.looked) == (1, 1)
    list(journal.read("k"))
    assert (place.asked, place.looked) == (2, 1)


def test_a_refused_client_goes_on_when_it_is_mended(world: World) -> None:
    place = Place([KnownTopic("orders", NEW)])
    journal = place.journal(world)
    with pytest.raises(TopicRecreated):
        journal.pointer("k")
    place.bound = [KnownTopic("orders", OLD)]
    assert journal.pointer("k") == 3


# When nothing answers


def test_an_append_needs_no_cassandra_and_is_checked_later(world: World) -> None:
    place = Place([KnownTopic("orders", NEW)])
    place.silent = TablesUnreadable(TOPIC, "k", "the id", "down")
    journal = place.journal(world)
    journal.append("k", [Event.text(4, "x")])
    place.now += SENT_WITHIN
    journal.append("k", [Event.text(5, "x")])
    assert place.looked == 1
    place.silent, place.now = None, ASKED_AGAIN_AFTER
    with pytest.raises(TopicRecreated):
        journal.append("k", [Event.text(6, "x")])


def test_another_topic_than_the_client_has_written_to_is_not_taken_for_right_in_silence(world: World) -> None:
    place = Place([KnownTopic("orders", NEW)])
    journal = place.journal(world)
    place.id = NEW
    journal.append("k", [Event.text(4, "x")])
    place.id, place.now = "another", 1.0
    place.silent = TablesUnreadable(TOPIC, "k", "the id", "down")
    with pytest.raises(TablesUnreadable):
        journal.append("k", [Event.text(5, "x")])


def test_a_read_without_an_answer_hands_out_nothing(world: World) -> None:
    place = Place([KnownTopic("orders", OLD)])
    place.silent = TablesUnreadable(TOPIC, "k", "the id", "down")
    with pytest.raises(TablesUnreadable):
        next(place.journal(world).read("k"))


def test_kafka_that_does_not_say_is_an_append_that_was_not_sent(world: World) -> None:
    place = Place([KnownTopic("orders", OLD)])
    place.broken = TopicUnconfirmed(TOPIC, "k", "timed out")
    before = len(world.records)
    with pytest.raises(NotSent) as raised:
        place.journal(world).append("k", [Event.text(4, "x")])
    assert (raised.value.is_certain, len(world.records)) == (True, before)
    with pytest.raises(TopicUnconfirmed):
        next(place.journal(world).read("k"))


def test_closing_a_journal_closes_its_guard(world: World) -> None:
    place = Place()
    place.journal(world).close()
    assert place.asked == -1


# What the control plane knows


class Plane:
    """A control plane with one pipeline over topic ``orders``."""

    def __init__(self) -> None:
        self.consensus = MemoryConsensus()
        self.control = LogControl(self.consensus, "p")
        self.pointed: int | None = None

    def bind(self, t: int, lower: int, upper: int, id_: str) -> None:
        newest = self.control.bindings_head().newest
        base = 0 if newest is None else Bindings(self.control).at(newest).end + 1
        topics = {"orders": id_, "others": "others-id"}
        slices = [("orders", 0, lower, upper), ("others", 0, t, t + 1)]
        add_binding(self.control, given_binding(t, base, *slices, run_id=f"run-{t}", topic_ids=topics))

    def accept(self, found: int) -> None:
        head = self.control.bindings_head()
        reached = head.reached["orders", 0]
        loss = Loss(LossKind.RECREATED, "orders", 0, reached, reached, NEW)
        gate = self.control.close_gate(LogGate(LogGateCause.LOST, "again", None, None, (loss,), None, found))
        accept(self.control, gate, AuditEntry("accept", "ann", "known", 10**18))

    def register(self, writer: str = "w", keyspace: str = "journal", namespaces: str = ".*") -> None:
        shape = {"kind": "journal", "keyspace": keyspace, "namespaces": namespaces}
        Positions(self.consensus, "p").register(writer, shape)

    def known(self, topic: str = "orders", pipeline: str | None = "p") -> list[KnownTopic]:
        def first_pointed(partitions: Collection[int]) -> int | None:
            assert set(partitions) == {0}
            return self.pointed

        declared = declare("journal", None, "LOCAL_QUORUM")
        return known_topics(self.consensus, topic, declared, pipeline, first_pointed)


T = 1_700_000_000_000_000


@pytest.fixture
def plane() -> Plane:
    plane = Plane()
    plane.bind(T, 0, 5, OLD)
    return plane


def test_the_id_that_was_bound_last_is_known(plane: Plane) -> None:
    plane.pointed = T
    assert plane.known() == [KnownTopic("p", OLD)]
    assert plane.known("not-bound") == [KnownTopic("p", None)]


def test_after_the_loss_is_accepted_the_tables_hold_the_old_topic(plane: Plane) -> None:
    plane.pointed = T
    plane.accept(T + 10)
    assert plane.known() == [KnownTopic("p", NEW, OLD)]
    plane.bind(T + 10_000_000, 0, 3, NEW)
    assert plane.known() == [KnownTopic("p", NEW, OLD)]


def test_tables_that_were_begun_with_the_new_topic_hold_nothing_of_the_old_one(plane: Plane) -> None:
    plane.accept(T + 10)
    plane.bind(T + 10_000_000, 0, 3, NEW)
    assert plane.known() == [KnownTopic("p", NEW)]
    plane.pointed = T + 10_000_000
    assert plane.known() == [KnownTopic("p", NEW)]


def test_a_topic_that_was_made_again_twice_is_the_newest_one(plane: Plane) -> None:
    plane.accept(T + 10)
    plane.bind(T + 10_000_000, 0, 3, NEW)
    plane.pointed = T + 10_000_000
    plane.accept(T + 10_000_010)
    plane.bind(T + 20_000_000, 0, 3, "newest-id")
    assert plane.known() == [KnownTopic("p", "newest-id", NEW)]


def test_the_old_binding_is_found_behind_many_younger_ones(plane: Plane) -> None:
    plane.accept(T + 10)
    for number in range(450):
        plane.bind(T + 10_000_000 + number * 100, number, number + 1, NEW)
    plane.pointed = T
    assert plane.known() == [KnownTopic("p", NEW, OLD)]


def test_a_journal_without_a_pipeline_goes_by_the_writers_of_its_keyspace(plane: Plane) -> None:
    assert plane.known(pipeline=None) == []
    plane.register("elsewhere", keyspace="other")
    plane.register("others", namespaces="^others$")
    assert plane.known(pipeline=None) == []
    plane.register()
    assert plane.known(pipeline=None) == [KnownTopic("p", OLD)]
