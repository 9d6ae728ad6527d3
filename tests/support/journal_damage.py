"""Damage to a journal's tables, one kind a function: rows, heads and pointers removed, changed or added."""

from tests.support.journal_samples import KEY, TOPIC, JournalWorld

from tidemark.journal.segments import head_segment

LATER = 10**18
"""A write time after all others."""
HEAD = (TOPIC, head_segment(KEY))


def row_place(house: JournalWorld, seq_nr: int) -> tuple[tuple[str, str, int], tuple[int, int]]:
    ((segment, *clustering),) = (one for one in house.journal.of(TOPIC).rows(KEY) if one[1] == seq_nr)
    return (KEY, TOPIC, segment), tuple(clustering)


def without_row(house: JournalWorld) -> None:
    house.journal.journal.delete_row(*row_place(house, 2), LATER)


def with_changed_row(house: JournalWorld) -> None:
    house.journal.journal.insert(*row_place(house, 2), {"payload_txt": '{"n":7}'}, LATER)


def with_row_of_another_incarnation(house: JournalWorld) -> None:
    house.journal.journal.insert(*row_place(house, 2), {"meta_record_id": "other"}, LATER)


def with_extra_row(house: JournalWorld) -> None:
    record_id = house.journal.of(TOPIC).head(KEY).record_id
    cells = {"partition": 0, "offset": 1, "meta_record_id": record_id}
    house.journal.journal.insert((KEY, TOPIC, 0), (9, 9), cells, LATER)


def with_old_head(house: JournalWorld) -> None:
    house.journal.metajournal.insert(HEAD, (KEY,), {"seq_nr": 2, "offset": 0}, LATER)


def without_head(house: JournalWorld) -> None:
    house.journal.metajournal.delete_row(HEAD, (KEY,), LATER)


def with_pointer_too_far(house: JournalWorld) -> None:
    house.journal.point(TOPIC, 0, 99, LATER)


def with_pointer_behind(house: JournalWorld) -> None:
    house.journal.point(TOPIC, 0, 0, LATER)


def without_pointer(house: JournalWorld) -> None:
    house.journal.pointer2.delete_partition((TOPIC, 0), LATER)
