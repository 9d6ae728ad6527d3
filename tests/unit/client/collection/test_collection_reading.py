"""A collection read as of any time: worked example 3.1, times that are refused, and what a reader holds."""

import gc
from datetime import UTC, datetime

import pytest
from tests.support.reading_world import ReadingWorld, accumulated, balances, counted, emitted
from tests.support.waiting import wait_until

from tidemark.cassandra.driver import NoHostAvailable
from tidemark.client.collection.errors import BadTime, CollectionUnreadable, ReaderClosed
from tidemark.client.collection.times import parse_time
from tidemark.clock import SECOND
from tidemark.collection.tables.errors import KeyRefused
from tidemark.outputs.errors import OutputMissing, Tainted
from tidemark.outputs.model.capability import GRACE
from tidemark.outputs.model.evidence import Taint
from tidemark.outputs.reader_errors import CapabilityMovedBack, Forgotten, NotYet, ReaderExpired, StillNeeded
from tidemark.outputs.state.lifecycle import record_taint
from tidemark.outputs.state.reader_lease import TERM

pytestmark = pytest.mark.unit

BOTH = [(10, {"alice": 100}), (30, {"alice": 120})]


def given_3_1() -> ReadingWorld:
    """Worked example 3.1: rendition 1 has bob one too high and the test account carol, rendition 2 has not.

    Both are delivered to; the handover is at 50.
    """
    world = ReadingWorld()
    for t, accounts in ((10, {"alice": 100}), (20, {"bob": 50}), (30, {"alice": 120}), (40, {"carol": 7})):
        world.step(t, accounts)
    world.bind_nothing(50)
    world.deliver(1)
    world.bind(50)
    world.write(1, 50, {"bob": 55})
    world.finish(1)
    world.build_second({10: {"alice": 100}, 20: {"bob": 49}, 30: {"alice": 120}, 50: {"bob": 54}})
    assert world.hand_over(2) == 50
    world.step(60, {"dave": 5}, {"dave": 5})
    return world


# Worked example 3.1


def test_3_1_what_a_reader_emits():
    world = given_3_1()
    with world.collection() as accounts:
        found = emitted(accounts.changes(0, timeout=0))
    assert found == {
        10: [("alice=100", 1)],
        20: [("bob=50", 1)],
        30: [("alice=100", -1), ("alice=120", 1)],
        40: [("carol=7", 1)],
        50: found[50],
        60: [("dave=5", 1)],
    }
    assert sorted(found[50]) == [("bob=50", -1), ("bob=54", 1), ("carol=7", -1)]


@pytest.mark.parametrize(
    ("at", "state"),
    [
        (40, {"alice": 120, "bob": 50, "carol": 7}),
        (49, {"alice": 120, "bob": 50, "carol": 7}),
        (50, {"alice": 120, "bob": 54}),
        (60, {"alice": 120, "bob": 54, "dave": 5}),
    ],
)
def test_3_1_what_a_reader_accumulates_is_what_it_reads(at, state):
    world = given_3_1()
    with world.collection() as accounts:
        found = emitted(accounts.changes(0, timeout=0))
        assert accumulated(found, at) == counted(state)
        assert balances(accounts.rows(at)) == state
        got = {key: accounts.get({"id": key}, at) for key in ("alice", "bob", "carol", "dave")}
    assert {key: row["balance"] for key, row in got.items() if row} == state


def test_3_1_a_late_reader_agrees_with_an_old_one():
    world = given_3_1()
    with world.collection() as late:
        state = balances(late.rows(55))
        assert state == {"alice": 120, "bob": 54}
        assert accumulated(emitted(late.changes(55, timeout=0)), 60, state) == counted(state | {"dave": 5})


def test_3_1_the_old_rendition_is_kept_for_a_reader_and_goes_after_it():
    world = given_3_1()
    reader = world.collection()
    assert reader.get({"id": "bob"}, at=49) == {"id": "bob", "owner": "Bob", "balance": 50}
    with pytest.raises(StillNeeded):
        world.retire_first()
    reader.hold(50)
    with pytest.raises(StillNeeded):  # trap 2.4: the changes at 50 need the state before
        world.retire_first()
    reader.hold(51)
    world.retire_first()
    with pytest.raises(Forgotten) as refusal:
        reader.get({"id": "bob"}, at=49)
    assert (refusal.value.t, refusal.value.since) == (49, 50)
    assert reader.since == 50
    assert reader.get({"id": "bob"}, at=51) == {"id": "bob", "owner": "Bob", "balance": 54}


def test_16_a_rendition_that_is_ahead_of_the_frontier_is_not_read_beyond_it():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    world.bind(20)
    world.write(1, 20, {"alice": 2})
    with world.collection() as accounts:
        assert accounts.get({"id": "alice"}) == {"id": "alice", "owner": "Alice", "balance": 1}
        with pytest.raises(NotYet) as refusal:
            accounts.get({"id": "alice"}, at=20)
        assert (refusal.value.t, refusal.value.frontier) == (20, 20)


# Times


def test_a_stale_frontier_is_advanced_by_the_reader_that_needs_it():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    world.bind(20)
    world.write(1, 20, {"alice": 2})
    world.finish(1)  # the delivery died before it advanced the frontier
    with world.collection() as accounts:
        assert accounts.get({"id": "alice"}, at=20) == {"id": "alice", "owner": "Alice", "balance": 2}
    assert world.output.frontier == 21


def test_an_answer_below_a_known_frontier_needs_no_control_plane():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    world.step(20, {"alice": 2})
    opened = world.opened()
    assert opened.view.covering(19) is opened.view.covering(12)
    known = opened.view.covering(19)
    world.step(30, {"alice": 3})
    assert opened.view.covering(19) is known
    assert opened.view.covering(25).frontier > 30


def test_the_newest_state_is_at_most_a_second_old():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    with world.collection() as accounts:
        clock = [0.0]
        view = accounts._opened.view
        view._clock = lambda: clock[0]
        assert accounts.get({"id": "alice"})["balance"] == 1
        world.step(20, {"alice": 2})
        clock[0] = 0.9
        assert accounts.get({"id": "alice"})["balance"] == 1
        clock[0] = 1.1
        assert accounts.get({"id": "alice"})["balance"] == 2
        assert accounts.rows().t == accounts.frontier - 1


def test_times_are_microseconds_or_dates_with_a_zone():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    world.step(5_000_000, {"alice": 2})
    with world.collection() as accounts:
        assert accounts.get({"id": "alice"}, at=datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC))["balance"] == 2
        assert accounts.get({"id": "alice"}, at=datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC))["balance"] == 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (datetime(2026, 1, 1), "no time zone"),
        ("10", "neither a whole number nor a date"),
        (1.5, "neither a whole number nor a date"),
        (True, "neither a whole number nor a date"),
        (-1, "before 1970"),
        (2**63, "too large"),
    ],
)
def test_other_times_are_refused_by_every_method(given, problem):
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    with world.collection() as accounts:
        for read in (
            lambda: accounts.get({"id": "alice"}, at=given),
            lambda: accounts.rows(given),
            lambda: accounts.changes(given),
            lambda: accounts.changes(0, until=given),
            lambda: accounts.hold(given),
        ):
            with pytest.raises(BadTime, match=problem):
                read()
        assert world.held == []


def test_keys_with_other_columns_or_types_are_refused():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    with world.collection() as accounts:
        for key in ({}, {"id": 7}, {"id": "alice", "owner": "x"}, {"id": None}):
            with pytest.raises(KeyRefused, match="each column of the key: id"):
                accounts.get(key)


def test_before_the_first_delivery_there_is_nothing_to_read():
    world = ReadingWorld()
    with world.collection() as accounts:
        assert (accounts.since, accounts.frontier) == (0, 0)
        for read in (lambda: accounts.get({"id": "a"}), lambda: accounts.rows(), lambda: accounts.rows(5)):
            with pytest.raises(NotYet):
                read()
        assert emitted(accounts.changes(0, timeout=0)) == {}
        with pytest.raises(NotYet):
            accounts.changes(1, timeout=0)
    nothing = ReadingWorld()
    nothing.pipeline = "another"
    with pytest.raises(OutputMissing, match="no output yet"):
        nothing.collection().get({"id": "a"})


def test_a_tainted_rendition_answers_below_its_frontier_and_says_why_not_beyond():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    record_taint(world.store, 1, Taint(10, 0, "1:a", "1:b", {}, {"m": "other"}))
    world.bind(20)
    with world.collection() as accounts:
        assert accounts.get({"id": "alice"})["balance"] == 1
        with pytest.raises(Tainted):
            accounts.get({"id": "alice"}, at=20)
        stream = accounts.changes(0)
        assert [(one.t, len(list(one))) for one in [next(stream)]] == [(10, 1)]
        with pytest.raises(Tainted):
            next(stream)
        with pytest.raises(ReaderClosed):
            next(stream)
        assert [one.t for one in accounts.changes(0, timeout=0)] == [10]
        with pytest.raises(Tainted):
            list(accounts.changes(0, until=20, timeout=0))


def test_a_cluster_that_does_not_answer_is_an_error_of_the_collection():
    world = ReadingWorld()
    world.step(10, {"alice": 1})

    def fail() -> None:
        raise NoHostAvailable("no host", {})

    world.renditions.rows_of(world.output.rendition(1)).before_read = fail
    with world.collection() as accounts:
        for read in (
            lambda: accounts.get({"id": "alice"}),
            lambda: list(accounts.rows()),
            lambda: [list(one) for one in accounts.changes(0)],
        ):
            with pytest.raises(CollectionUnreadable, match=f"{world.pipeline}/accounts: Cassandra did not"):
                read()


# What a reader holds


def test_21_a_reader_that_takes_the_newest_state_moves_on_with_the_frontier():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    with world.collection() as accounts:
        accounts.get({"id": "alice"})
        assert world.held == [10]
        world.step(20, {"alice": 2})
        accounts._held._renew(accounts._held._lease)
        assert world.held == [20]
    assert world.held == []


def test_22_a_time_that_was_asked_for_stays_readable_until_it_is_given_up():
    world = ReadingWorld()
    for t in (10, 20, 30):
        world.step(t, {"alice": t})
    with world.collection() as accounts:
        assert accounts.get({"id": "alice"}, at=20)["balance"] == 20
        assert accounts.get({"id": "alice"}, at=12)["balance"] == 10  # older: it registers again
        assert world.held == [12]
        accounts._held._renew(accounts._held._lease)
        assert world.held == [12]
        accounts.hold(25)
        assert world.held == [25]
        assert accounts.get({"id": "alice"}, at=28)["balance"] == 20


def test_22_operators_see_who_holds_a_time():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    with world.collection(who="billing") as accounts:
        accounts.get({"id": "alice"})
        (held,) = world.readers.load().capabilities.values()
    assert held.who.startswith("billing on ")


def test_rows_hold_their_time_until_they_are_read_or_closed():
    world = ReadingWorld()
    world.step(10, {"alice": 1, "bob": 2})
    with world.collection() as accounts:
        rows = accounts.rows(10)
        assert world.held == [10]
        assert rows.read_all().sort_by("id").to_pylist()[1] == {"id": "bob", "owner": "Bob", "balance": 2}
        assert world.held == []
        rows = accounts.rows(10)
        next(rows)
        rows.close()
        with pytest.raises(ReaderClosed):
            next(rows)
        with accounts.rows(10) as rows:
            assert rows.schema.names == ["id", "owner", "balance"]
        assert world.held == []
        unread = accounts.rows(10)
        assert world.held == [10]
        del unread
        wait_until(lambda: world.held == [], what="the end of what was forgotten")


def test_readers_that_were_forgotten_end_in_a_thread_of_their_own():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    accounts = world.collection()
    accounts.get({"id": "alice"})
    next(accounts.changes(0))
    assert len(world.held) == 2
    del accounts
    gc.collect()
    wait_until(lambda: world.held == [], what="the end of what was forgotten")


def test_closing_a_collection_ends_everything_that_was_opened_from_it():
    world = ReadingWorld()
    world.step(10, {"alice": 1, "bob": 2})
    accounts = world.collection()
    accounts.get({"id": "alice"})
    rows, stream = accounts.rows(), accounts.changes(0)
    one = next(stream)
    next(rows)
    assert len(world.held) == 3
    accounts.close()
    accounts.close()
    assert world.held == []
    for read in (lambda: accounts.get({"id": "a"}), lambda: next(rows), lambda: next(stream)):
        with pytest.raises(ReaderClosed, match="this reader is closed"):
            read()
    with pytest.raises(ReaderExpired):
        list(one)


# Expiry: an error at the next call, never a wrong answer


def expire_all(world: ReadingWorld) -> None:
    """The process was suspended past its term, and its rendition was retired meanwhile."""
    world.clock.pass_seconds((TERM + GRACE) / SECOND + 1)
    world.readers.expire()


@pytest.fixture
def switched() -> ReadingWorld:
    world = given_3_1()
    return world


def test_22_an_expired_reader_gets_an_error_at_its_next_call(switched):
    accounts = switched.collection()
    assert accounts.get({"id": "bob"}, at=49)["balance"] == 50
    expire_all(switched)
    switched.retire_first()
    for _ in range(2):
        with pytest.raises(ReaderExpired):
            accounts.get({"id": "bob"}, at=49)
    with pytest.raises(ReaderExpired):
        accounts.get({"id": "bob"})
    accounts.close()
    with switched.collection() as again:
        assert again.get({"id": "bob"})["balance"] == 54


def test_22_what_was_read_past_the_end_of_the_term_is_not_returned(switched):
    accounts = switched.collection()
    rows_of_first = switched.renditions.rows_of(switched.output.rendition(1))
    accounts.get({"id": "bob"}, at=49)
    rows_of_first.before_read = lambda: expire_all(switched)
    with pytest.raises(ReaderExpired):
        accounts.get({"id": "bob"}, at=49)
    accounts.close()


def test_22_rows_and_changes_are_cut_off_by_an_error_when_the_term_ends(switched):
    accounts = switched.collection()
    rows, stream = accounts.rows(49), accounts.changes(0)
    next(rows)
    one = next(stream)
    expire_all(switched)
    switched.retire_first()
    with pytest.raises(ReaderExpired):
        next(rows)
    with pytest.raises(ReaderExpired):
        list(one)
    with pytest.raises(ReaderExpired):
        next(stream)
    accounts.close()


def test_22_an_error_of_a_dropped_table_is_told_as_the_end_of_the_term(switched):
    accounts = switched.collection()
    accounts.get({"id": "bob"}, at=49)
    rows_of_first = switched.renditions.rows_of(switched.output.rendition(1))

    def drop() -> None:
        expire_all(switched)
        raise NoHostAvailable("the table is gone", {})

    rows_of_first.before_read = drop
    with pytest.raises(ReaderExpired):
        accounts.get({"id": "bob"}, at=49)
    accounts.close()


def test_a_reader_that_was_late_but_not_removed_goes_on(switched):
    accounts = switched.collection()
    accounts.get({"id": "bob"}, at=49)
    switched.clock.pass_seconds(TERM / SECOND + 5)
    assert accounts.get({"id": "bob"}, at=49)["balance"] == 50
    accounts.close()


def test_24_a_pin_keeps_a_time_without_any_process():
    world = given_3_1()
    world.readers.pin("year-end", 49, "ann")
    world.clock.pass_seconds(10**6)
    with pytest.raises(StillNeeded, match="year-end"):
        world.retire_first()
    with world.collection() as accounts:
        assert accounts.get({"id": "bob"}, at=49)["balance"] == 50
    world.readers.drop("year-end")
    world.retire_first()
    with world.collection() as accounts, pytest.raises(Forgotten):
        accounts.rows(49)


def test_a_capability_never_moves_back():
    world = given_3_1()
    accounts = world.collection()
    accounts.hold(30)
    with pytest.raises(CapabilityMovedBack):
        world.readers.move_forward(accounts._held._lease.check().reader, 20)
    accounts.hold(20)  # registers again instead
    assert world.held == [20]
    accounts.close()


def test_a_forked_process_registers_for_itself_and_leaves_its_parent_s_capability_alone():
    world = ReadingWorld()
    world.step(10, {"alice": 1})
    accounts = world.collection()
    accounts.get({"id": "alice"}, at=10)
    (of_parent,) = world.readers.load().capabilities
    parents_holder = accounts._held._holder
    accounts._held._process = -1  # as a child finds it
    accounts.get({"id": "alice"}, at=10)
    assert len(world.held) == 2
    accounts.close()
    assert list(world.readers.load().capabilities) == [of_parent]
    parents_holder.stop()


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        (" 1794909600000000 ", 1_794_909_600_000_000),
        ("2026-11-17T10:00:00Z", 1_794_909_600_000_000),
        ("2026-11-17T11:00:00.000001+01:00", 1_794_909_600_000_001),
    ],
)
def test_times_as_operators_write_them(text, micros):
    assert parse_time(text) == micros


# What is stored, in the order of tokens


def test_what_is_stored_is_read_in_the_order_of_tokens_with_deletes():
    world = given_3_1()
    world.step(70, {"alice": None}, {"alice": None})
    with world.collection() as accounts:
        rows = [row for page in accounts.stored(70) for row in page]
        gone = {row.key[0].decode() for row in rows if row.gone}
    assert [row.token for row in rows] == sorted(row.token for row in rows)
    assert (len(rows), gone) == (3, {"alice"})


def test_it_goes_on_with_a_token_that_was_seen():
    world = given_3_1()
    with world.collection() as accounts:
        rows = [row for page in accounts.stored(60) for row in page]
        rest = [row for page in accounts.stored(60, rows[1].token) for row in page]
    assert rest == rows[1:]


def test_versions_of_keys_are_those_after_a_time_and_the_one_before_it():
    world = given_3_1()
    with world.collection() as accounts:
        found = accounts.stored_versions([(b"alice",), (b"carol",), (b"eve",)], 20, 40)
    assert {key[0]: [row.t for row in rows] for key, rows in found.items()} == {
        b"alice": [30, 10],
        b"carol": [40],
    }


def test_what_is_stored_is_refused_at_the_times_that_rows_are():
    world = given_3_1()
    with world.collection() as accounts:
        with pytest.raises(NotYet):
            next(accounts.stored(10**9))
        with pytest.raises(NotYet):
            accounts.stored_versions([(b"alice",)], 20, 10**9)


def test_a_page_that_was_read_while_another_time_was_asked_for_comes_once():
    world = given_3_1()
    with world.collection() as accounts:
        pages = accounts.stored(60)
        first = next(pages)
        accounts.get({"id": "alice"}, at=10)  # replaces the capability
        rows = [*first, *(row for page in pages for row in page)]
    assert len({row.key for row in rows}) == len(rows) == 3
