"""The lock around changes of a keyspace's schema. Cassandra is a single row here, with a clock."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unauthorized

from tidemark.cassandra.schema import lock
from tidemark.cassandra.schema.errors import SchemaLockHeld, SchemaLockOverrun, SchemaStepFailed
from tidemark.cassandra.schema.lock import schema_lock
from tidemark.cassandra.schema.waiting import SETTLED, Clock

pytestmark = pytest.mark.unit

START = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
US, WAIT = "tidemark-1", 60.0


@dataclass
class FakeTime:
    """Passes when the code pauses, and only then."""

    seconds: float = 0.0
    pauses: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: START + timedelta(seconds=self.seconds), lambda: self.seconds, self.pause)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.seconds += seconds


@dataclass(frozen=True)
class LockRow:
    applied: bool
    id: str
    expiry_ms: int
    timestamp: datetime
    metadata: str | None


@dataclass
class Locks:
    """The table ``locks``, as a session's lightweight transactions see it."""

    time: FakeTime
    row: LockRow | None = None
    ends_at: float = 0.0
    inserts: int = 0
    faults: list[Callable[[Callable[[], Any]], Any]] = field(default_factory=list)
    """What becomes of the next transactions; the rest are well."""

    def execute(self, statement: Any, values: tuple[Any, ...]) -> Any:
        insert = statement.query_string.startswith("INSERT INTO journal.locks")
        apply = (lambda: self._insert(values)) if insert else (lambda: self._delete(values))
        return self.faults.pop(0)(apply) if self.faults else apply()

    def held_by(self, metadata: str | None, ends_at: float = 1e9) -> LockRow:
        since = datetime(2026, 3, 1, 11, 59, 30)
        self.row, self.ends_at = LockRow(False, "kafka-journal", 60_000, since, metadata), ends_at
        return self.row

    def now(self) -> LockRow | None:
        return self.row if self.time.seconds < self.ends_at else None

    def _insert(self, values: tuple[Any, ...]) -> Any:
        self.inserts += 1
        if there := self.now():
            return One(there)
        self.row, self.ends_at = LockRow(False, *values), self.time.seconds + 60
        return One(replace(self.row, applied=True))

    def _delete(self, values: tuple[Any, ...]) -> Any:
        _, metadata, *times = values
        there = self.now()
        if there and there.metadata == metadata and there.timestamp in times:
            self.row = None
        return One(None)


@dataclass(frozen=True)
class One:
    row: Any

    def one(self) -> Any:
        return self.row


def answer_lost(apply: Callable[[], Any]) -> Any:
    apply()
    raise OperationTimedOut({}, "10.0.0.1")


def never_arrived(apply: Callable[[], Any]) -> Any:
    raise OperationTimedOut({}, "10.0.0.1")


def not_usable_yet(apply: Callable[[], Any]) -> Any:
    raise InvalidRequest("table locks does not exist")


def refused(apply: Callable[[], Any]) -> Any:
    raise Unauthorized("User reader has no MODIFY permission")


def well(apply: Callable[[], Any]) -> Any:
    return apply()


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Locks]:
    monkeypatch.setattr(lock, "origin", lambda: US)
    yield Locks(FakeTime())
    assert not lock._this_process.locked()


def held(locks: Locks, wait: float = WAIT) -> Any:
    return schema_lock(locks, "orders", "journal", "locks", wait, locks.time.clock)


def test_the_lock_is_a_row_as_kafka_journal_writes_it(locks):
    with held(locks):
        row = locks.now()
    assert row == LockRow(False, "kafka-journal", 60_000, datetime(2026, 3, 1, 12, 0, 0, 123_000), US)


def test_the_lock_is_given_back(locks):
    with held(locks):
        pass
    assert locks.now() is None


def test_the_lock_is_given_back_when_the_work_fails(locks):
    with pytest.raises(ZeroDivisionError), held(locks):
        raise ZeroDivisionError
    assert locks.now() is None


def test_a_lock_of_another_is_asked_for_every_100_ms_until_it_ends(locks):
    locks.held_by("akka-7", ends_at=1.0)
    with held(locks):
        assert locks.now().metadata == US
    assert set(locks.time.pauses) == {0.1}
    assert locks.time.seconds == pytest.approx(1.0, abs=0.11)


def test_after_a_minute_of_waiting_the_error_names_the_holder_and_since_when(locks):
    locks.held_by("akka-7")
    with (
        pytest.raises(SchemaLockHeld, match=r"akka-7 has been .* since 2026-03-01 11:59:30 UTC") as error,
        held(locks),
    ):
        pytest.fail("got a lock that another has")
    assert (error.value.holder, error.value.since) == ("akka-7", datetime(2026, 3, 1, 11, 59, 30))
    assert locks.time.seconds == pytest.approx(60, abs=0.11)


def test_a_holder_without_a_name_is_an_error_all_the_same(locks):
    locks.held_by(None)
    with pytest.raises(SchemaLockHeld, match="a process without a name"), held(locks):
        pytest.fail("got a lock that another has")


def test_waiting_in_vain_leaves_the_lock_of_the_other(locks):
    theirs = locks.held_by("akka-7")
    with pytest.raises(SchemaLockHeld), held(locks, wait=1):
        pytest.fail("got a lock that another has")
    assert locks.now() == theirs


def test_a_lock_of_our_own_host_is_not_ours(locks):
    theirs = locks.held_by(US)
    with pytest.raises(SchemaLockHeld), held(locks, wait=1):
        pytest.fail("got a lock that another has")
    assert locks.now() == theirs


def test_a_lock_that_ended_and_is_anothers_by_now_is_left_to_them(locks):
    with held(locks):
        locks.time.seconds = 61
        theirs = locks.held_by("akka-7")
    assert locks.now() == theirs


def test_no_process_waits_for_its_own_lock_although_the_answer_got_lost(locks):
    locks.faults = [answer_lost]
    with held(locks):
        assert locks.now().metadata == US
    assert (locks.inserts, locks.time.seconds) == (2, 0.1)


def test_a_lock_whose_answer_got_lost_is_given_back(locks):
    locks.faults = [answer_lost]
    with held(locks):
        pass
    assert locks.now() is None


def test_the_time_of_such_a_lock_runs_from_its_first_sending(locks):
    locks.faults = [answer_lost]
    with held(locks) as may_go_on:
        locks.time.seconds = lock.LONGEST + 0.05
        with pytest.raises(SchemaLockOverrun):
            may_go_on()


def test_an_attempt_that_never_arrived_is_made_again(locks):
    locks.faults = [never_arrived]
    with held(locks):
        assert locks.inserts == 1


def test_an_attempt_that_got_lost_does_not_make_the_lock_of_another_ours(locks):
    locks.held_by(US)
    locks.faults = [never_arrived]
    with pytest.raises(SchemaLockHeld), held(locks, wait=1):
        pytest.fail("got a lock that another has")


def test_without_a_single_answer_the_cause_is_said_and_nothing_is_left_behind(locks):
    locks.faults = [answer_lost] * 11
    with (
        pytest.raises(SchemaStepFailed, match=r"take the lock in journal.locks.*OperationTimedOut"),
        held(locks, 0.95),
    ):
        pytest.fail("went on without knowing")
    assert (locks.faults, locks.now()) == ([], None)


def test_a_table_that_is_just_being_created_is_waited_for(locks):
    locks.faults = [not_usable_yet] * 3
    with held(locks):
        assert (locks.now().metadata, locks.time.pauses) == (US, [0.1] * 3)


def test_a_table_that_never_becomes_usable_is_an_error(locks):
    locks.faults = [not_usable_yet] * 1000
    with pytest.raises(SchemaStepFailed, match="table locks does not exist"), held(locks):
        pytest.fail("went on without a lock")
    assert locks.time.seconds == pytest.approx(SETTLED, abs=0.11)


def test_a_refusal_is_not_repeated(locks):
    locks.faults = [refused]
    with pytest.raises(SchemaStepFailed, match="no MODIFY permission"), held(locks):
        pytest.fail("went on without a lock")
    assert (locks.inserts, locks.time.pauses) == (0, [])


def test_a_lock_that_cannot_be_given_back_is_no_error(locks):
    locks.faults = [well, never_arrived]
    with held(locks):
        pass
    assert locks.now().metadata == US


def test_a_lock_that_cannot_be_given_back_does_not_hide_why_the_work_failed(locks):
    locks.faults = [well, never_arrived]
    with pytest.raises(ZeroDivisionError), held(locks):
        raise ZeroDivisionError


def test_no_step_begins_that_might_outlive_the_lock(locks):
    with held(locks) as may_go_on:
        locks.time.seconds = lock.LONGEST
        may_go_on()
        locks.time.seconds += 1
        with pytest.raises(SchemaLockOverrun):
            may_go_on()
    assert lock.LONGEST + lock.STEP < lock.EXPIRY


def test_threads_of_one_process_take_turns_without_asking_cassandra(locks):
    errors: list[Exception] = []

    def compete() -> None:
        try:
            with held(locks, wait=0.01):
                pytest.fail("two at once")
        except SchemaLockHeld as error:
            errors.append(error)

    with held(locks):
        thread = threading.Thread(target=compete)
        thread.start()
        thread.join()
    assert ([error.holder for error in errors], locks.inserts) == ([f"this process on {US}"], 1)
