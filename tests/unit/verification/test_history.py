"""An entity's life: what each message did, what a reader sees, and why a row is hidden."""

import pytest
from tests.support.found_in_memory import FoundInMemory, basis, given_delivered
from tests.support.journal_samples import KEY, TOPIC, JournalWorld

from tidemark.journal.visible import Hidden
from tidemark.verification.journal.history import History, MessageFate, read_histories, read_history
from tidemark.verification.selection import Entity

pytestmark = pytest.mark.unit

LATER = 10**18


def told(house: JournalWorld, key: str = KEY, most: int | None = None) -> History:
    return read_history(basis(house), house.log, FoundInMemory(house.journal), Entity(TOPIC, key), most)


def test_every_message_says_what_it_did() -> None:
    house = given_delivered("A1,2,3 M D2 A2", "N P P A1~5")
    assert [(step.action, step.standing, step.effect) for step in told(house).steps] == [
        ("append 1 to 3", MessageFate.APPLIED, "3 events; begins the entity"),
        ("mark", MessageFate.NO_ACTION, ""),
        ("delete to 2", MessageFate.APPLIED, "deleted up to 2, at event 3"),
        (
            "append 2",
            MessageFate.APPLIED,
            "1 event; 1 of them hidden: deleted up to 2; sequence number used again",
        ),
        ("", MessageFate.NO_ACTION, ""),
        ("purge", MessageFate.APPLIED, "nothing was left of it"),
        ("purge", MessageFate.APPLIED, "there was nothing"),
        ("append 1", MessageFate.APPLIED, "1 event; begins the entity; expires on 1970-01-03"),
    ]


def test_ids_offsets_and_times_are_those_of_the_log() -> None:
    step = told(given_delivered("j:A1 A1@7", "A2")).steps[0]
    assert (step.id, step.partition, step.offset, step.timestamp, step.t) == (1, 0, 1, 7, 86_400_000_000)


def test_what_the_writer_has_not_come_to_is_shown_too() -> None:
    house = given_delivered("A1")
    house.actions.publish("A2")
    house.actions.publish("A3")
    found = told(house)
    assert [step.standing for step in found.steps] == [
        MessageFate.APPLIED,
        MessageFate.BEYOND,
        MessageFate.BEYOND,
    ]
    assert (found.readable, found.judged) == (1, "as the log says")


def test_what_was_acknowledged_or_cannot_be_applied_says_so() -> None:
    house = given_delivered("A1 A2! A3")
    assert told(house).steps[1].standing is MessageFate.BEYOND
    house.acknowledge(house.started(), 1)
    house.go("singly")
    found = told(house)
    assert [step.standing for step in found.steps] == [
        MessageFate.APPLIED,
        MessageFate.ACKNOWLEDGED,
        MessageFate.APPLIED,
    ]
    assert found.judged == "as the log says"


def test_what_a_reader_sees_now() -> None:
    found = told(given_delivered("A1,2,3 D1"))
    assert (found.readable, found.beyond_head, found.hidden) == (2, 0, ())
    assert found.head is not None
    assert (found.head.seq_nr, found.head.delete_to) == (3, 1)


def test_every_hidden_row_says_why() -> None:
    house = given_delivered("A1,2,3 D1", segment_size=2)
    whose = house.journal.of(TOPIC).head(KEY).record_id
    for segment, seq_nr, record_id in ((0, 1, whose), (0, 2, "other"), (2, 3, whose)):
        cells = {"partition": 0, "offset": 40, "meta_record_id": record_id}
        house.journal.journal.insert((KEY, TOPIC, segment), (seq_nr, 99), cells, LATER)
    found = told(house)
    assert [(row.seq_nr, row.offset, row.why) for row in found.hidden] == [
        (1, 40, "deleted up to 1"),
        (2, 40, "of another incarnation: its meta_record_id is not the head's record_id"),
        (3, 40, "in another segment than segment_size 2 puts it"),
    ]
    assert found.hidden_by == {Hidden.DELETED: 1, Hidden.OTHER_INCARNATION: 1, Hidden.WRONG_SEGMENT: 1}
    assert found.judged == "as the log says"


def test_rows_of_an_entity_without_a_head_are_found_where_they_once_were() -> None:
    house = given_delivered("A1,2,3,4,5,6,7 P", segment_size=2)
    house.journal.journal.insert((KEY, TOPIC, 0), (1, 99), {"partition": 0, "offset": 0}, LATER)
    found = told(house)
    assert [(row.seq_nr, row.why) for row in found.hidden] == [(1, "the entity has no head")]
    assert found.judged == "as the log says"


def test_a_difference_is_part_of_the_story() -> None:
    house = given_delivered("A1,2")
    house.journal.journal.delete_partition((KEY, TOPIC, 0), LATER)
    found = told(house)
    assert found.judged == "different"
    assert [one["said"] for one in found.to_dict()["differences"]] == [
        "orders: k: event 1 is missing",
        "orders: k: event 2 is missing",
    ]


def test_of_a_long_life_the_newest_part_is_shown() -> None:
    found = told(given_delivered("A1 A2 A3 A4"), most=2)
    assert ([step.action for step in found.steps], found.total) == (["append 3", "append 4"], 4)


def test_an_unknown_entity_has_no_history() -> None:
    house = given_delivered("A1")
    tables = FoundInMemory(house.journal)
    assert list(read_histories(basis(house), house.log, tables, "nobody", [TOPIC], None)) == []
    (found,) = read_histories(basis(house), house.log, tables, KEY, [TOPIC], None)
    assert found.key == KEY


def test_as_json_it_is_plain() -> None:
    import json

    shown = json.loads(json.dumps(told(given_delivered("A1~5 D1")).to_dict()))
    assert (shown["head"]["delete_to"], shown["head"]["expire_on"]) == (1, "1970-01-02")
    assert shown["steps"][0]["standing"] == "applied"
