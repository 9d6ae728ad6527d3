"""Sending corrections: none counts twice, and none after a change that the comparison does not know."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.operation_topic import TOPIC_ID, MemoryTopic, operation

from tidemark.operations import corrections
from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.sync.decisions import CurrentObject, DumpedObject, correction, decide
from tidemark.oplog.sync.errors import CorrectionsVoided, OplogTopicChanged
from tidemark.oplog.sync.sender import read_on, send_corrections
from tidemark.oplog.sync.sending import Outgoing, Place, Sending, SendingRules, Settled

pytestmark = pytest.mark.unit

RUN = "run"


def sending_of(
    topic: MemoryTopic,
    found: Sequence[ObjectOperation],
    starts: dict[int, int],
    at_once: int = 2,
    run: str = RUN,
) -> Sending:
    """The corrections of a comparison that knew everything before ``starts``."""
    known = {key: place for key, place in topic.places().items() if place[1] < starts[place[0]]}
    rules = SendingRules("events", "oplog", TOPIC_ID, run, starts, at_once)
    stored = {one.key: known.get(one.key) for one in found}
    return Sending(rules, stored, [(one, topic.partition_of(one.id)) for one in found])


def send(
    topic: MemoryTopic, found: Sequence[ObjectOperation], starts: dict[int, int] | None = None
) -> list[Settled]:
    settled: list[Settled] = []
    sending = sending_of(topic, found, dict(topic.ends()) if starts is None else starts)
    send_corrections(sending, topic, settled.extend)
    return settled


def test_R34_corrections_are_operations_that_every_reader_sees():
    topic = MemoryTopic()
    wanted = [operation("a", "insert", 1), operation("b", "delete", 2), operation("c", "update", 3)]
    settled = send(topic, wanted)
    assert topic.state() == {one.id: one for one in wanted}
    assert {one.operation.id for one in settled if one.is_sent} == {"a", "b", "c"}


def test_what_has_changed_since_the_comparison_is_not_sent():
    topic = MemoryTopic()
    starts = dict(topic.ends())
    topic.append(operation("a", "update", 20))
    (settled,) = send(topic, [operation("a", "delete", 11)], starts)
    assert not settled.is_sent
    assert topic.sent == []


def test_what_changes_between_reading_and_sending_voids_the_correction():
    class Busy(MemoryTopic):
        def send(self, corrections: Sequence[Outgoing]) -> list[Place]:
            self.append(operation("a", "update", 20))
            return super().send(corrections)

    topic = Busy()
    (settled,) = send(topic, [operation("a", "delete", 11)])
    assert topic.state()["a"].event is EventName.UPDATE
    assert not settled.is_sent
    assert len(topic.sent) == 1


def test_R35_a_second_run_over_the_same_comparison_sends_nothing():
    topic = MemoryTopic()
    starts = dict(topic.ends())
    found = [operation("a", "insert", 1), operation("b", "insert", 1)]
    send(topic, found, starts)
    topic.sent.clear()
    assert all(one.is_sent for one in send(topic, found, starts))
    assert topic.sent == []


def test_a_correction_that_comes_too_late_is_sent_again(monkeypatch):
    monkeypatch.setattr(corrections, "FARTHEST", 5)

    class Flooded(MemoryTopic):
        floods = 2

        def send(self, corrections: Sequence[Outgoing]) -> list[Place]:
            for number in range(6 if self.floods > 0 else 0):
                self.append(operation(f"other{number}", "update", 20))
            self.floods -= 1
            return super().send(corrections)

    topic = Flooded()
    (settled,) = send(topic, [operation("a", "insert", 1)])
    assert settled.is_sent
    assert len(topic.sent) == 3
    assert topic.state()["a"].event is EventName.INSERT


def test_a_sender_gives_up_where_everything_comes_too_late(monkeypatch):
    monkeypatch.setattr(corrections, "FARTHEST", -1)
    with pytest.raises(CorrectionsVoided) as refused:
        send(MemoryTopic(), [operation("a", "insert", 1), operation("b", "insert", 1)])
    assert refused.value.left == 2


def test_a_void_correction_of_another_run_does_not_count_as_a_change():
    topic = MemoryTopic()
    topic.append(operation("a", "update", 9))
    starts = dict(topic.ends())
    void = Correction("another", 0, TOPIC_ID)  # its sender had not read the update
    topic.append(operation("a", "delete", 10), [(CORRECTION_HEADER, void.to_header())])
    (settled,) = send(topic, [operation("a", "update", 11)], starts)
    assert settled.is_sent


def test_a_correction_of_another_run_that_counts_is_a_change():
    topic = MemoryTopic()
    topic.append(operation("a", "update", 9))
    starts = dict(topic.ends())
    valid = Correction("another", 1, TOPIC_ID)
    topic.append(operation("a", "delete", 10), [(CORRECTION_HEADER, valid.to_header())])
    (settled,) = send(topic, [operation("a", "update", 11)], starts)
    assert not settled.is_sent


def test_a_place_in_an_earlier_topic_of_the_same_name_voids_nothing():
    topic = MemoryTopic()
    wanted = operation("a", "update", 11)
    rules = SendingRules("events", "oplog", TOPIC_ID, RUN, {0: 0})
    settled: list[Settled] = []
    send_corrections(Sending(rules, {wanted.key: (0, 5_000)}, [(wanted, 0)]), topic, settled.extend)
    assert [one.is_sent for one in settled] == [True]
    assert len(topic.sent) == 1


def test_a_partition_that_has_lost_its_end_gets_nothing():
    topic = MemoryTopic()
    with pytest.raises(OplogTopicChanged, match="lost the end of partition 0"):
        send_corrections(sending_of(topic, [operation("a")], {0: 3}), topic, print)
    assert topic.sent == []


def test_a_record_that_is_no_operation_is_no_change():
    topic = MemoryTopic()
    topic.append(operation("a", "update", 9), [(CORRECTION_HEADER, b"nonsense")])
    starts = {0: 0}
    rules = SendingRules("events", "oplog", TOPIC_ID, RUN, starts)
    wanted = operation("a", "delete", 11)
    sending = Sending(rules, {wanted.key: None}, [(wanted, 0)])
    read_on(sending, topic)
    assert [one.header.looked_at for one in sending.batch()] == [1]


def test_nothing_is_sent_before_the_last_batch_was_read():
    topic = MemoryTopic()
    sending = sending_of(topic, [operation("a"), operation("b")], {0: 0}, at_once=1)
    sending.acknowledge(topic.send(sending.batch()))
    with pytest.raises(AssertionError, match="was not read"):
        sending.batch()


def test_each_correction_says_how_far_its_partition_was_read():
    topic = MemoryTopic(2)
    topic.append(operation("b"))  # partition 0
    sending = sending_of(topic, [operation("a"), operation("d")], {0: 0, 1: 0})
    read_on(sending, topic)
    assert {one.partition: one.header.looked_at for one in sending.batch()} == {0: 1, 1: 0}


# A model: producers, crashes and late records, against what readers make of the topic

IDS = "abcdef"
START = 10_000


class Crashed(Exception):
    """The sender was killed."""


class Hostile(MemoryTopic):
    """A topic in which anything happens around a request, as a script says."""

    def __init__(self, script: Iterable[tuple]) -> None:
        super().__init__(2)
        self._script = iter(script)
        self.late: list[Outgoing] = []
        """Corrections under way whose sender does not know what became of them."""

    def happen(self) -> None:
        for what, id_, number in self._script:
            if what == "produce":
                self.append(operation(id_, ("insert", "update", "delete")[number % 3], 11 + number))
            elif what == "arrive" and self.late:
                self.append_correction(self.late.pop(number % len(self.late)))
            elif what == "crash":
                raise Crashed
            elif what == "calm":
                return

    def ends(self):
        self.happen()
        return super().ends()

    def send(self, corrections: Sequence[Outgoing]) -> list[Place]:
        places = []
        for one in corrections:
            try:
                self.happen()
            except Crashed:
                self.late += corrections[len(places) :]  # may still arrive
                raise
            places += super().send([one])
        self.happen()
        return places


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["produce", "produce", "arrive", "crash", "calm", "calm", "calm"]),
        st.sampled_from(IDS),
        st.integers(0, 8),
    ),
    max_size=40,
)
OBJECTS = st.dictionaries(st.sampled_from(IDS), st.integers(0, 12), max_size=6)
HISTORY = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(["insert", "update", "delete"]), st.integers(0, 12)),
    max_size=8,
)


def compare(topic: MemoryTopic, dump: dict[str, int]) -> list[ObjectOperation]:
    """The corrections that a dump asks for, by the state as it is."""
    state, found = topic.state(), []
    for id_ in IDS:
        now = state.get(id_)
        current = now and CurrentObject(now.event is EventName.DELETE, now.timestamp, now.parents)
        line = DumpedObject(dump[id_] * 1_000, ()) if id_ in dump else None
        sent = correction("video", id_, decide(line, current, START), line, current, START)
        if sent is not None:
            found.append(sent)
    return found


@settings(max_examples=300)
@given(HISTORY, OBJECTS, STEPS, st.sampled_from([3, 8, 20_000]))
def test_R33_R35_whatever_happens_a_correction_counts_once_and_never_after_a_change(
    history, dump, script, farthest
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corrections, "FARTHEST", farthest)
        topic = Hostile(script)
        for id_, event, at in history:
            topic.append(operation(id_, event, at))
        starts = dict(MemoryTopic.ends(topic))
        found = compare(topic, dump)
        settled: list[Settled] = []
        while True:
            settled.clear()
            try:
                send_corrections(sending_of(topic, found, starts), topic, settled.extend)
            except Crashed:
                continue
            break
        assert {one.operation.id for one in settled} == {one.id for one in found}
        while topic.late:
            topic.append_correction(topic.late.pop())
        valid = topic.valid()
        for one in found:
            since = [
                (place, recorded.correction)
                for place, recorded in valid
                if recorded.operation.key == one.key and place[1] >= starts[place[0]]
            ]
            # Either the first operation since the comparison is the correction, or none counts at all.
            assert [place for place, sent in since if sent] in ([], [since[0][0]] if since else [])
            (end,) = [end for end in settled if end.operation.key == one.key]
            assert end.is_sent == (since[0][1] is not None)
            assert end.place in [place for place, _ in since]
        if all(step[0] != "produce" for step in script):
            assert compare(topic, dump) == []
