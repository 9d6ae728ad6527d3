"""Any sequence of inserts, claims and their ends, deaths of processes and lost answers, in any order.

The machine keeps its own books: what was promised to inserters and to holders of claims. After every step the
store is asked whether each promise is kept: nothing that was inserted is lost, no worker holds what
another one still holds, what has expired is not seen. What ended in doubt promises nothing.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.contracts.work_world import Stores, WorkWorld, given_declaration
from tests.support.faults import Killed

from tidemark.consensus.objects import Undecided
from tidemark.work.errors import ClaimLost
from tidemark.work.model.buckets import BucketState
from tidemark.work.model.decision import Outcome as Said
from tidemark.work.model.entry import DeadEntry
from tidemark.work.queue.dead_letters import dead_letters, redrive
from tidemark.work.queue.journal import Claimed

ALL_KEYS = ("a", "b", "c")
KEYS = st.sampled_from(["a", "a", *ALL_KEYS])
PRIORITIES = st.sampled_from([0, 20, 180])
DELAYS = st.sampled_from([0, 0, 0, 1, 45])
LIVES = st.sampled_from([None, None, None, None, 30, 4_000])
TICKS = st.sampled_from([1, 20, 45, 61, 61, 200, 3_600, 7_300, 90_000])
TROUBLES = st.sampled_from([None] * 20 + list(range(5)) + list(Fault))
"""Nothing, death before one of the next writes, or a transaction of unknown outcome."""

ALWAYS = [*["insert"] * 4, *["claim"] * 5, *["tick"] * 3, *["sweep"] * 2, "cancel", "restart", "land"]
WITH_A_CLAIM = [
    *["insert behind"] * 4,
    *["keep"] * 6,
    *["done"] * 4,
    *["fail"] * 2,
    "snooze",
    "release",
    "outwait",
]
WITH_A_LOST_CLAIM = ["late refresh", "late done", "late fail"]
WITH_A_LETTER = ["redrive"] * 3
"""As often as it takes to get far: a run that only waits and sweeps shows nothing."""


LIMIT = 60
"""Seconds that a claim lasts."""


class Fuse:
    """Counts writes, and kills before one of them."""

    def __init__(self) -> None:
        self.left: int | None = None

    def burn(self) -> None:
        if self.left == 0:
            self.left = None
            raise Killed
        if self.left is not None:
            self.left -= 1


class Fused:
    """A store whose writes may not be reached."""

    WRITES = frozenset(["put", "dispose", "bury", "record", "dig_up", "see", "commit", "forget"])

    def __init__(self, store: Any, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in self.WRITES:
            return found

        def write(*values: Any, **options: Any) -> Any:
            self._fuse.burn()
            return found(*values, **options)

        return write


@dataclass(frozen=True)
class Promise:
    """An insert that was acknowledged: its number and its expiry."""

    number: int
    expires: int


class WorkMachine(RuleBasedStateMachine):
    """One journal, some workers."""

    def __init__(self, stores: Stores, flaky: FlakyConsensus) -> None:
        super().__init__()
        self.fuse, self.flaky = Fuse(), flaky
        fused = Stores(
            Fused(flaky, self.fuse),
            Fused(stores.registry, self.fuse),
            lambda name: Fused(stores.due(name), self.fuse),
            lambda name: Fused(stores.archive(name), self.fuse),
        )
        declared = given_declaration(
            time_limit=f"{LIMIT}s",
            max_timeouts=2,
            max_failures=1,
            shards=2,
            history="7d",
            backoff={"first": "5s", "most": "5s"},
        )
        self.house = WorkWorld(fused, declared)
        self.promised: dict[str, list[Promise]] = {}
        self.since: dict[str, int] = {}
        """When each claim was made or last kept, by its token."""
        self.held: list[Claimed] = []
        """Claims whose holders have said nothing that would end them."""
        self.over: list[Claimed] = []
        """Claims that have ended, one way or another; their holders may not know."""
        self.letters: list[DeadEntry] = []
        self.something_was_late = False
        self.numbers = count(1_000)

    # What happens

    @rule(trouble=TROUBLES, data=st.data())
    def step(self, trouble: Any, data: st.DataObject) -> None:
        self.end_by_time()
        possible = [
            *ALWAYS,
            *(WITH_A_CLAIM if self.held else ()),
            *(WITH_A_LOST_CLAIM if self.over else ()),
            *(WITH_A_LETTER if self.letters else ()),
        ]
        match data.draw(st.sampled_from(possible)):
            case "insert":
                values = (data.draw(each) for each in (KEYS, PRIORITIES, DELAYS, LIVES))
                self.insert(*values, trouble)
            case "insert behind":
                values = (data.draw(each) for each in (PRIORITIES, DELAYS, LIVES))
                self.insert(data.draw(st.sampled_from(self.held)).key, *values, trouble)
            case "claim":
                self.claim(data.draw(st.integers(1, 3)), trouble)
            case "cancel":
                self.cancel(data.draw(KEYS), trouble)
            case "tick":
                self.house.clock.now += data.draw(TICKS) * 1000
            case "sweep":
                self.sweep(data.draw(st.booleans()), trouble)
            case "restart":
                self.house.restart()
            case "land":
                self.flaky.land()
            case "redrive":
                self.redrive(data.draw(st.sampled_from(self.letters)), trouble)
            case "keep":
                self.keep(trouble)
            case "outwait":
                self.outwait(data.draw(st.sampled_from(self.held)))
            case what if what.startswith("late "):
                self.end(data.draw(st.sampled_from(self.over)), what.removeprefix("late "), trouble)
            case what:
                self.end(data.draw(st.sampled_from(self.held)), what, trouble)

    def insert(self, key: str, priority: int, delay: int, life: int | None, trouble: Any) -> None:
        now, number = self.house.clock(), next(self.numbers)
        expires = None if life is None else now + life * 1000
        said = ""
        with self.troubled(trouble) as outcome:
            process = now + delay * 1000
            said = self.house.insert(key, number, priority=priority, process=process, expires=expires)
        if outcome.is_certain and said != Said.EXPIRED:
            self.promised.setdefault(key, []).append(Promise(number, expires or 0))

    def claim(self, limit: int, trouble: Any) -> None:
        got: list[Claimed] = []
        request = f"request-{next(self.numbers)}"
        with self.troubled(trouble) as outcome:
            got = self.house.journal.claim("w", limit, request)
        if not outcome.is_certain:
            self.flaky.land()
            got = self.house.journal.claim("w", limit, request)
            tokens = {entry.token for key in ALL_KEYS if (entry := self.house.stored(key)) is not None}
            in_doubt = {token for token in tokens if token is not None and token.startswith(f"{request}-")}
            assert in_doubt == {claimed.token for claimed in got}, "held by no worker that knows of it"
        now = self.house.clock()
        for claimed in got:
            assert not has_expired(claimed.request.expires, now), "given out after it expired"
            assert claimed.request.process <= now, "given out before it was due"
            self.since[claimed.token] = now
        self.held += got

    def keep(self, trouble: Any) -> None:
        """Claims are kept past their first end: from now on they are found held."""
        for seconds in (30, 30):
            self.house.clock.now += seconds * 1000
            self.end_by_time()
            for claimed in list(self.held):
                self.refresh(claimed, trouble)
        self.house.clock.now += 5_000

    def refresh(self, claimed: Claimed, trouble: Any) -> None:
        with self.told(claimed, trouble) as outcome:
            refreshed = self.house.journal.refresh(claimed)
        if outcome.is_certain:
            assert not outcome.is_lost, f"{claimed.key} was held and could not be kept"
            self.held[self.held.index(claimed)] = refreshed
            self.since[claimed.token] = self.house.clock()

    def end(self, claimed: Claimed, how: str, trouble: Any) -> None:
        journal, is_held = self.house.journal, claimed in self.held
        now, may_be_done, may_be_dead = self.house.clock(), how == "done", trouble is not None
        letters = self.known_letters() if how == "fail" else []
        with self.told(claimed, trouble) as outcome:
            match how:
                case "done":
                    may_be_done = journal.done(claimed) is Said.DONE
                case "fail":
                    may_be_dead |= journal.fail(claimed, "no route") is Said.DEAD
                case "snooze":
                    journal.snooze(claimed, now + 30_000)
                case "release":
                    journal.release(claimed)
                case "refresh":
                    journal.refresh(claimed)
        if how == "fail" and not may_be_dead:
            # It would count as found, whatever becomes of the entry.
            assert self.known_letters() == letters, f"{claimed.key} is a dead letter and was not given up"
        if outcome.is_lost:
            assert not is_held, f"{claimed.key} was held and could not be ended"
        elif may_be_done:
            self.keep_only(claimed.key, above=number_of(claimed.request.payload))
        if claimed in self.held:
            self.let_go(claimed)

    def outwait(self, claimed: Claimed) -> None:
        """A change lands after every process has stopped waiting for it; then it is reconciled."""
        self.end(claimed, "release", Fault.LATE)
        self.house.clock.now += 61_000
        self.end_by_time()
        for reconciles in (False, True):
            self.sweep(reconciles, None)

    def cancel(self, key: str, trouble: Any) -> None:
        with self.troubled(trouble):
            self.house.journal.cancel(key)
        self.promised.pop(key, None)
        for claimed in [one for one in self.held if one.key == key]:
            self.let_go(claimed)

    def sweep(self, reconciles: bool, trouble: Any) -> None:
        """Seals and disposes of buckets too, and forgets what has long been gone.

        Reconciling repairs what was late: from then on every entry has to be in sight again.
        """
        if reconciles:
            self.flaky.land()
        with self.troubled(trouble) as outcome:
            self.house.sweep(*(ALL_KEYS if reconciles else ()), gone=ALL_KEYS)
        if reconciles and trouble is None and outcome.is_certain:
            self.something_was_late = False
        self.letters = self.known_letters()

    def redrive(self, letter: DeadEntry, trouble: Any) -> None:
        with self.troubled(trouble):
            redrive(self.house.journal, letter)

    # What must hold

    @invariant()
    def nothing_is_lost(self) -> None:
        now = self.house.clock()
        for key, promises in self.promised.items():
            kept = [promise for promise in promises if not has_expired(promise.expires, now)]
            wanted = max((promise.number for promise in kept), default=0)
            assert self.has(key, wanted), f"{key} {wanted} is lost"
            self.promised[key] = kept

    @invariant()
    def no_entry_has_two_valid_tokens(self) -> None:
        self.end_by_time()
        twice = [key for key, tokens in Counter(one.key for one in self.held).items() if tokens > 1]
        assert not twice, f"{twice} are held twice"

    @invariant()
    def a_valid_claim_is_the_entry_s(self) -> None:
        for claimed in self.held:
            stored = self.house.stored(claimed.key)
            assert stored is not None, f"{claimed.key} is held and gone"
            assert stored.token == claimed.token, f"{claimed.key} is held by another worker"

    @invariant()
    def what_has_expired_is_not_seen(self) -> None:
        now = self.house.clock()
        for key in ALL_KEYS:
            entry = self.house.journal.get(key)
            assert entry is None or not has_expired(entry.request.expires, now)

    @invariant()
    def every_entry_will_be_looked_at(self) -> None:
        """Reconciling is for changes that land after every process has given them up."""
        if self.something_was_late:
            return
        registered = self.house.parts.registry.read()
        for key in ALL_KEYS:
            entry = self.house.stored(key)
            if entry is not None:
                hint = entry.hint
                mark = registered.marks.get((hint.bucket, hint.shard, hint.priority), 0)
                assert self.house.parts.due.holds(hint), f"{key} has no hint"
                assert registered.buckets[hint.bucket].state in (BucketState.OPEN, BucketState.SEALED)
                assert mark <= hint.due_at, f"the hint of {key} is taken to be settled"

    def teardown(self) -> None:
        """Everything promised comes out, however long no worker looked."""
        self.fuse.left = None
        self.flaky.disarm()
        self.flaky.land()
        self.nothing_is_lost()
        self.house.clock.now += 100_000
        self.house.restart()
        self.held.clear()
        for _ in range(20):
            self.house.sweep(*(ALL_KEYS if self.something_was_late else ()))
            for claimed in self.house.claim("last", 10):
                self.house.journal.done(claimed)
                self.keep_only(claimed.key, above=number_of(claimed.request.payload))
            self.nothing_is_lost()
            self.house.clock.now += 61_000
            if not any(self.promised.values()):
                return
        left = {key for key in self.promised if self.promised[key] and self.house.journal.get(key)}
        assert not left, f"{left} never came out"

    # Books

    def has(self, key: str, number: int) -> bool:
        """Whether that request, or one that came after it, can still be found, dead letters included."""
        entry = self.house.stored(key)
        requests = [] if entry is None else [entry.request, entry.successor or entry.request]
        if any(number_of(request.payload) >= number for request in requests) or not number:
            return True
        letters = self.known_letters()
        return any(letter.key == key and number_of(letter.request.payload) >= number for letter in letters)

    def known_letters(self) -> list[DeadEntry]:
        return [kept.letter for kept in dead_letters(self.house.parts, self.house.clock())]

    def keep_only(self, key: str, above: int) -> None:
        self.promised[key] = [one for one in self.promised.get(key, []) if one.number > above]

    def end_by_time(self) -> None:
        """A limit passes without any process that notices it."""
        now = self.house.clock()
        for one in list(self.held):
            is_lapsed = now // 1000 - self.since[one.token] // 1000 > LIMIT
            if is_lapsed or has_expired(one.request.expires, now):
                self.let_go(one)

    def let_go(self, claimed: Claimed) -> None:
        self.held.remove(claimed)
        self.over = [*self.over[-3:], claimed]

    @contextmanager
    def told(self, claimed: Claimed, trouble: Any) -> Any:
        """A worker says something about a claim; in doubt, or lost, it does not count on it any more."""
        with self.troubled(trouble) as outcome:
            try:
                yield outcome
            except ClaimLost:
                outcome.is_lost = True
        if not outcome.is_certain and claimed in self.held:
            self.let_go(claimed)

    @contextmanager
    def troubled(self, trouble: Any) -> Any:
        """Something goes wrong, or nothing does."""
        outcome = Outcome()
        if isinstance(trouble, Fault):
            self.flaky.arm(*[trouble] * self.flaky.attempts)
            self.something_was_late |= trouble is Fault.LATE
        elif trouble is not None:
            self.fuse.left = trouble
        try:
            yield outcome
        except Undecided:
            outcome.is_certain = False
        except Killed:
            outcome.is_certain = False
            self.house.restart()
        finally:
            self.fuse.left = None
            self.flaky.disarm()


@dataclass
class Outcome:
    is_certain: bool = True
    is_lost: bool = False


def has_expired(expires: int, now: int) -> bool:
    """As the contract says it: after the expiry, in whole seconds; 0 is never."""
    return expires != 0 and now // 1000 > expires // 1000


def number_of(payload: str) -> int:
    return int(payload.removeprefix('{"data":').removesuffix("}"))


def check_work(given_stores: Callable[[], tuple[Stores, FlakyConsensus]], examples: int, steps: int) -> None:
    """Run the machine; every run has a journal of its own."""
    run_state_machine_as_test(
        lambda: WorkMachine(*given_stores()),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
