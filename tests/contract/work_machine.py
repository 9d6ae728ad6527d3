"""Any sequence of inserts, claims and their ends, deaths of processes and lost answers, in any order.

The machine keeps its own books: what was promised to inserters and to holders of claims. After every step the
store is asked whether each promise is kept: nothing that was inserted is lost, nobody holds what somebody
else still holds, nobody sees what has expired. What ended in doubt promises nothing.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.contract.flaky_consensus import Fault, FlakyConsensus
from tests.contract.work_house import House, Stores, given_declaration

from tidemark.consensus.objects import Undecided
from tidemark.work.errors import ClaimLost
from tidemark.work.journal import Claimed
from tidemark.work.listing import dead_letters
from tidemark.work.rules import is_expired, is_lapsed

KEYS = st.sampled_from(["a", "a", "a", "b", "c"])
PRIORITIES = st.sampled_from([0, 20, 180])
DELAYS = st.sampled_from([0, 0, 0, 0, 1, 45])
LIVES = st.sampled_from([None, None, None, None, 30, 4_000])
TICKS = st.sampled_from([1, 20, 45, 45, 61, 61, 200, 3_600, 7_300])
TROUBLES = st.sampled_from([None] * 12 + list(range(6)) + list(Fault))
"""Nothing, death before one of the next writes, or a transaction of unknown outcome."""


STEPS = [
    *["insert"] * 4,
    *["claim"] * 5,
    *["keep"] * 4,
    *["done"] * 3,
    *["fail"] * 1,
    *["tick"] * 4,
    *["sweep"] * 2,
    "snooze",
    "release",
    "cancel",
    "restart",
    "land",
]
"""As often as it takes to get far: a run that only waits and sweeps shows nothing."""


class Killed(BaseException):
    """What ``kill -9`` looks like to a test: nothing of ours catches it."""


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

    WRITES = frozenset(["put", "dispose", "bury", "record", "dig_up", "commit"])

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
            time_limit="60s",
            max_timeouts=2,
            max_failures=1,
            shards=2,
            history="7d",
            backoff={"first": "5s", "most": "5s"},
        )
        self.house = House(fused, declared)
        self.promised: dict[str, list[Promise]] = {}
        self.claims: list[Claimed] = []
        self.valid: dict[str, Claimed] = {}
        self.numbers = count(1_000)

    # What happens

    @rule(what=st.sampled_from(STEPS), trouble=TROUBLES, data=st.data())
    def step(self, what: str, trouble: Any, data: st.DataObject) -> None:
        match what:
            case "insert":
                values = (data.draw(each) for each in (KEYS, PRIORITIES, DELAYS, LIVES))
                self.insert(*values, trouble)
            case "claim":
                self.claim(data.draw(st.integers(1, 3)), trouble)
            case "cancel":
                self.cancel(data.draw(KEYS), trouble)
            case "tick":
                self.house.clock.now += data.draw(TICKS) * 1000
            case "sweep":
                self.sweep(trouble)
            case "restart":
                self.house.restart()
            case "land":
                self.flaky.land()
            case _ if self.claims:
                # Now and then somebody whose claim is over speaks up.
                held = [*self.valid.values()] * 3 + self.claims[-1:]
                claimed = data.draw(st.sampled_from(held))
                if what == "keep":
                    self.house.clock.now += 45_000
                    self.refresh(claimed, trouble)
                else:
                    self.end(claimed, what, trouble)

    def insert(self, key: str, priority: int, delay: int, life: int | None, trouble: Any) -> None:
        now, number = self.house.clock(), next(self.numbers)
        expires = None if life is None else now + life * 1000
        with self.troubled(trouble) as outcome:
            self.house.insert(key, number, priority=priority, process=now + delay * 1000, expires=expires)
        if outcome.is_certain:
            self.promised.setdefault(key, []).append(Promise(number, expires or 0))

    def claim(self, limit: int, trouble: Any) -> None:
        got: list[Claimed] = []
        with self.troubled(trouble):
            got = self.house.claim("w", limit)
        for claimed in got:
            self.take(claimed)

    def take(self, claimed: Claimed) -> None:
        now, rules = self.house.clock(), self.house.declared.rules
        assert not is_expired(claimed.request, now), "given out after it expired"
        assert claimed.request.process <= now, "given out before it was due"
        before = self.valid.get(claimed.key)
        if before is not None:
            over = is_lapsed(before.entry, now, rules) or is_expired(before.request, now)
            assert over, f"{claimed.key} is held twice"
        self.claims.append(claimed)
        self.valid[claimed.key] = claimed

    def refresh(self, claimed: Claimed, trouble: Any) -> None:
        refreshed = claimed
        with self.told(claimed, trouble) as outcome:
            refreshed = self.house.journal.refresh(claimed)
        if outcome.is_certain and not outcome.is_lost:
            self.claims[self.claims.index(claimed)] = refreshed
            self.valid[claimed.key] = refreshed

    def end(self, claimed: Claimed, how: str, trouble: Any) -> None:
        journal = self.house.journal
        now = self.house.clock()
        with self.told(claimed, trouble) as outcome:
            match how:
                case "done":
                    journal.done(claimed)
                case "fail":
                    journal.fail(claimed, "no route")
                case "snooze":
                    journal.snooze(claimed, now + 30_000)
                case "release":
                    journal.release(claimed)
        if not outcome.is_lost:
            if how == "done":
                self.keep_only(claimed.key, above=number_of(claimed.request.payload))
            self.forget_claim(claimed)

    def cancel(self, key: str, trouble: Any) -> None:
        with self.troubled(trouble):
            self.house.journal.cancel(key)
        self.promised.pop(key, None)
        self.valid.pop(key, None)

    def sweep(self, trouble: Any) -> None:
        """Seals and disposes of buckets too."""
        with self.troubled(trouble):
            self.house.sweep("a", "b", "c")

    # What must hold

    @invariant()
    def nothing_is_lost(self) -> None:
        now = self.house.clock()
        for key, promises in self.promised.items():
            kept = [promise for promise in promises if not promise.expires or now <= promise.expires]
            for promise in kept:
                assert promise.number <= self.newest(key), f"{key} {promise.number} is lost"
            self.promised[key] = kept

    @invariant()
    def a_valid_claim_is_the_entry_s(self) -> None:
        now, rules = self.house.clock(), self.house.declared.rules
        for key, claimed in self.valid.items():
            if not is_lapsed(claimed.entry, now, rules) and not is_expired(claimed.request, now):
                stored = self.house.stored(key)
                assert stored is not None, f"{key} is held and gone"
                assert stored.token == claimed.token, f"{key} is held by somebody else"

    @invariant()
    def nobody_sees_what_has_expired(self) -> None:
        now = self.house.clock()
        for key in ("a", "b", "c"):
            entry = self.house.journal.get(key)
            assert entry is None or not is_expired(entry.request, now)

    def teardown(self) -> None:
        """Everything promised comes out, however long nobody looked."""
        self.fuse.left = None
        self.flaky.disarm()
        self.flaky.land()
        self.nothing_is_lost()
        self.house.clock.now += 100_000
        self.house.restart()
        self.valid.clear()
        for _ in range(20):
            self.house.sweep("a", "b", "c")
            for claimed in self.house.claim("last", 10):
                self.house.journal.done(claimed)
                self.keep_only(claimed.key, above=number_of(claimed.request.payload))
            self.house.clock.now += 61_000
            self.nothing_is_lost()
            if not any(self.promised.values()):
                return
        left = {key for key in self.promised if self.promised[key] and self.house.journal.get(key)}
        assert not left, f"{left} never came out"

    # Books

    def newest(self, key: str) -> int:
        """The number of the newest request that can still be found, dead letters included."""
        entry = self.house.stored(key)
        requests = [] if entry is None else [entry.request, entry.successor or entry.request]
        letters = dead_letters(self.house.parts, self.house.clock())
        requests += [letter.request for letter in letters if letter.key == key]
        return max((number_of(request.payload) for request in requests), default=0)

    def keep_only(self, key: str, above: int) -> None:
        self.promised[key] = [one for one in self.promised.get(key, []) if one.number > above]

    def forget_claim(self, claimed: Claimed) -> None:
        held = self.valid.get(claimed.key)
        if held is not None and held.token == claimed.token:
            del self.valid[claimed.key]

    @contextmanager
    def told(self, claimed: Claimed, trouble: Any) -> Any:
        """A worker says something about a claim; in doubt, or lost, it does not count on it any more."""
        with self.troubled(trouble) as outcome:
            try:
                yield outcome
            except ClaimLost:
                outcome.is_lost = True
        if not outcome.is_certain:
            self.forget_claim(claimed)

    @contextmanager
    def troubled(self, trouble: Any) -> Any:
        """Something goes wrong, or nothing does."""
        outcome = Outcome()
        if isinstance(trouble, Fault):
            self.flaky.arm(*[trouble] * self.flaky.attempts)
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
