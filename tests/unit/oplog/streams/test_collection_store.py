"""The collection as streams read it: objects, what keeps them readable, and when nothing does any more."""

from collections.abc import Iterable
from struct import pack

import pytest
from tests.support.oplog_samples import NOON
from tests.support.reading_world import ReadingWorld

from tidemark.collection.model.row import CollectionRow
from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.agent.streams.sources.collection_store import BEFORE_EVERYTHING, CollectionStore
from tidemark.oplog.agent.streams.sources.object_store import TimeForgotten
from tidemark.oplog.model.event_ids import BEGINNING
from tidemark.outputs.errors import OutputMissing
from tidemark.outputs.reader_errors import ReaderExpired

pytestmark = pytest.mark.unit


def parents_cell(parents: Iterable[str]) -> bytes:
    cells = [one.encode() for one in parents]
    return pack(">i", len(cells)) + b"".join(pack(">i", len(one)) + one for one in cells)


def write(world: ReadingWorld, t: int, *objects: tuple[str, str, list[str]]) -> int:
    """A binding with operations: id, event and parents of each."""
    bound: int = world.bind(t).t
    rows = []
    for id_, event, parents in objects:
        values = (event.encode(), pack(">q", NOON), parents_cell(parents))
        key, place = (b"video", id_.encode()), ("oplog", 1, world.ids)
        gone = event == "delete"
        rows.append(CollectionRow(key, values, bound, world.ids, bound + world.ids, gone, *place, 0))
        world.ids += 1
    world.renditions.add(world.output.rendition(1), rows)
    world.deliver(1)
    return bound


def store_of(world: ReadingWorld) -> CollectionStore:
    return CollectionStore(lambda: world.opened(who="an agent"))


def ids_of(store: CollectionStore, t: int, token: int = BEGINNING) -> list[str]:
    with store.holding(t):
        return [row.operation.id for page in store.rows(t, token) for row in page]


@pytest.fixture
def world() -> ReadingWorld:
    return ReadingWorld()


def test_a_row_is_an_operation_with_its_place(world: ReadingWorld) -> None:
    t = write(world, 1_000, ("x", "insert", ["user/1", "ü"]))
    store = store_of(world)
    with store.holding(t):
        ((row,),) = store.rows(t, BEGINNING)
    assert row.operation == ObjectOperation(EventName.INSERT, NOON, ("user/1", "ü"), "video", "x")
    assert (row.t, row.partition, row.offset) == (t, 1, 0)


def test_an_object_without_parents(world: ReadingWorld) -> None:
    t = write(world, 1_000, ("x", "insert", []))
    store = store_of(world)
    with store.holding(t):
        ((row,),) = store.rows(t, BEGINNING)
    assert row.operation.parents == ()


def test_deleted_objects_are_rows_too(world: ReadingWorld) -> None:
    write(world, 1_000, ("x", "insert", ["user/1"]))
    t = write(world, 2_000, ("x", "delete", ["user/1"]))
    store = store_of(world)
    with store.holding(t):
        ((row,),) = store.rows(t, BEGINNING)
    assert row.is_deleted


def test_rows_come_by_token_and_go_on_at_one(world: ReadingWorld) -> None:
    t = write(world, 1_000, *((str(number), "insert", []) for number in range(20)))
    store = store_of(world)
    with store.holding(t):
        rows = [row for page in store.rows(t, BEGINNING) for row in page]
    tokens = [row.token for row in rows]
    assert tokens == sorted(tokens)
    assert ids_of(store, t, tokens[11]) == [row.operation.id for row in rows[11:]]


def test_the_newest_time_is_the_last_that_is_readable(world: ReadingWorld) -> None:
    t = write(world, 1_000, ("x", "insert", []))
    assert store_of(world).newest() >= t


def test_versions_are_those_around_two_times(world: ReadingWorld) -> None:
    times = [write(world, t, ("x", "update", [str(t)])) for t in (1_000, 2_000, 3_000, 4_000)]
    store = store_of(world)
    with store.holding(times[0]):
        found = store.versions([("video", "x"), ("video", "y")], times[1], times[2])
    assert [row.t for row in found["video", "x"]] == [times[2], times[1]]
    assert ("video", "y") not in found


def test_one_reader_holds_the_oldest_time_of_all_replications(world: ReadingWorld) -> None:
    times = [write(world, t, ("x", "update", [])) for t in (1_000, 2_000, 3_000)]
    store = store_of(world)
    with store.holding(times[1]):
        with store.holding(times[0]), store.holding(times[2]):
            assert world.held == [times[0]]
        assert world.held == [times[1]]
    assert world.held == []


def test_a_time_that_is_forgotten_is_refused_and_holds_nothing(world: ReadingWorld) -> None:
    times = [write(world, t, ("x", "update", [])) for t in (1_000, 2_000)]
    world.trim(times[1])
    store = store_of(world)
    with pytest.raises(TimeForgotten), store.holding(times[0]):
        pass
    assert world.held == []


def test_a_time_that_never_was_is_refused(world: ReadingWorld) -> None:
    write(world, 1_000, ("x", "update", []))
    with pytest.raises(TimeForgotten), store_of(world).holding(10**17):
        pass


def test_a_refused_time_ends_no_other_replication(world: ReadingWorld) -> None:
    times = [write(world, t, ("x", "update", [])) for t in (1_000, 2_000)]
    world.trim(times[1])
    store = store_of(world)
    with store.holding(times[1]):
        with pytest.raises(TimeForgotten), store.holding(times[0]):
            pass
        assert [len(page) for page in store.rows(times[1], BEGINNING)] == [1]


def test_a_replication_whose_reader_has_expired_ends_and_the_next_one_begins(world: ReadingWorld) -> None:
    t = write(world, 1_000, ("x", "update", []))
    store = CollectionStore(lambda: world.opened(who="an agent"))
    with store.holding(t):
        (capability,) = world.readers.load().capabilities.values()
        world.readers.drop(capability.reader)
        store._reader._held._lease._is_over = True  # type: ignore[union-attr]  # as after a long pause
        with pytest.raises(ReaderExpired):
            list(store.rows(t, BEGINNING))
        with store.holding(t):
            assert [len(page) for page in store.rows(t, BEGINNING)] == [1]


def test_C10_a_collection_that_nothing_was_bound_for_is_empty(world: ReadingWorld) -> None:
    world.store.remove(world.output)
    store = store_of(world)
    assert store.newest() == BEFORE_EVERYTHING
    assert ids_of(store, BEFORE_EVERYTHING) == []


def test_a_collection_that_is_missing_though_something_was_bound_is_an_error(world: ReadingWorld) -> None:
    world.bind(1_000)
    world.store.remove(world.output)
    with pytest.raises(OutputMissing):
        store_of(world).newest()


def test_nothing_is_read_without_holding_its_time(world: ReadingWorld) -> None:
    t = write(world, 1_000, ("x", "update", []))
    with pytest.raises(ReaderExpired):
        list(store_of(world).rows(t, BEGINNING))
