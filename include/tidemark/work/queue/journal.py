"""One work journal: insert, claim, renew and end claims.

At-least-once: an entry runs again when its worker exceeded the time limit or crashed before ``done``. At most
one worker holds a valid claim of an entry, and only that worker can end it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import uniform
from uuid import uuid4

from tidemark.consensus.objects import ABSENT
from tidemark.work.errors import BadRequest, ClaimLost
from tidemark.work.model.claim_loss import why_lost
from tidemark.work.model.decide import Cancel, Claim, Done, Event, Fail, Refresh, Release, Snooze, decide
from tidemark.work.model.decision import Outcome
from tidemark.work.model.declaration import milliseconds
from tidemark.work.model.entry import Entry, Hint, Packet, Request
from tidemark.work.model.lapse import notice
from tidemark.work.model.merge import merge
from tidemark.work.model.rules import FURTHEST, is_due
from tidemark.work.queue.due_queue import Lanes
from tidemark.work.queue.entry_updates import Changed, Changing, Decide, Parts
from tidemark.work.store.entries import Stored
from tidemark.work.store.registry import Registered

MOST_AT_ONCE = 1_000
LONGEST_ERROR = 4_000
LONGEST_TOKEN = 200
TOGETHER = 50
"""Hints that are checked in one step."""
REGISTRY_FOR = 1_000
"""Milliseconds for which the registry's buckets are cached; pauses are always read."""


KNOWN_FOR = 3_600_000
"""Milliseconds for which a claim's copy of the entry is used. A version can recur only after ``GONE_FOR``."""
NOTHING = Stored(None, ABSENT)
_LOG = logging.getLogger(__name__)


def jitter(tries: int) -> None:
    """Sleeps for a random time that grows with each attempt."""
    time.sleep(uniform(0, 0.002 * 2 ** min(tries, 7)))


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed entry, with the fencing token and the owner of the claim."""

    key: str
    token: str
    owner: str
    stored: Stored

    @property
    def entry(self) -> Entry:
        """The entry as the claim left it."""
        if self.stored.entry is None:
            raise ValueError("a claim of nothing")
        return self.stored.entry

    @property
    def request(self) -> Request:
        """The claimed work; requests that arrive meanwhile are queued behind it."""
        return self.entry.request


class WorkJournal:
    """One journal. Threads may share it."""

    def __init__(self, parts: Parts, lanes: Lanes | None = None, registry_for: int = REGISTRY_FOR) -> None:
        self.parts, self.declared = parts, parts.declared
        self.changing = Changing(parts)
        self._rules, self._clock = parts.declared.rules, parts.clock
        self._lanes = lanes or Lanes(parts.declared, parts.due)
        self._registry_for = registry_for
        self._registered: tuple[int, Registered] | None = None
        self._expects_new = False
        """Whether the last inserted key was new. Then the next insert skips the first read."""

    def insert(self, packet: Packet) -> Changed:
        """Inserts a packet, or merges it into the key's entry."""
        known = NOTHING if self._expects_new else None
        changed = self.changing.change(
            packet.key, lambda old, now: merge(old, packet, now, self._rules), known
        )
        self._expects_new = changed.stored.version == NOTHING.version + 1
        return changed

    def get(self, key: str) -> Entry | None:
        """The live entry of a key, with expiry and lapses applied; None without one."""
        return notice(self.parts.entries.read(key).entry, self._clock(), self._rules).entry

    def claim(self, owner: str, limit: int = 1, request: str | None = None) -> list[Claimed]:
        """Up to ``limit`` due entries, each held from now on by ``owner``.

        A retry with the same ``request`` returns the claims that the failed call made. Entries of priority
        ``slow_from`` and above are claimed only where no other entry is due. Empty while the journal is
        paused.
        """
        self._check(owner, limit, request)
        if self.parts.registry.is_paused():
            return []
        registered = self._read_registry()
        request = request or uuid4().hex
        claimed = self._claim_below(self.declared.slow_from, owner, limit, request, registered)
        if not claimed and self.declared.slow_from is not None:
            claimed = self._claim_below(None, owner, limit, request, registered)
        return claimed

    def refresh(self, claimed: Claimed) -> Claimed:
        """Renews the claim. Raises ``ClaimLost``."""
        changed = self._tell(claimed, Refresh(claimed.token))
        return Claimed(claimed.key, claimed.token, claimed.owner, changed.stored)

    def done(self, claimed: Claimed) -> Outcome:
        """Ends the claim as done. Idempotent, also after the entry has expired. Raises ``ClaimLost``."""
        return self._tell(claimed, Done(claimed.token)).outcome

    def fail(self, claimed: Claimed, error: str) -> Outcome:
        """Ends the claim as failed: the entry is retried later, or becomes a dead letter."""
        if not isinstance(error, str):
            raise BadRequest(self.declared.name, "`error` must be text")
        return self._tell(claimed, Fail(claimed.token, error[:LONGEST_ERROR])).outcome

    def snooze(self, claimed: Claimed, until: int) -> Outcome:
        """Ends the claim and postpones the entry; not a failure."""
        if until < 0 or isinstance(until, bool):
            raise BadRequest(self.declared.name, f"`until` is {until!r}, but must be a time")
        if until > self._clock() + FURTHEST:
            raise BadRequest(self.declared.name, "`until` is more than ten years ahead")
        return self._tell(claimed, Snooze(claimed.token, until)).outcome

    def release(self, claimed: Claimed) -> Outcome:
        """Ends the claim without a result."""
        return self._tell(claimed, Release(claimed.token)).outcome

    def cancel(self, key: str) -> Outcome:
        """Removes the key's entry and the request queued behind it; a claim of it is lost."""
        return self._decide(key, Cancel()).outcome

    def held(self, key: str, token: str) -> Claimed:
        """A claim by its key and token, for a caller that does not have the object."""
        stored = self.parts.entries.read(key)
        entry = stored.entry
        owner = entry.owner if entry is not None and entry.token == token else None
        return Claimed(key, token, owner or "", stored)

    def _tell(self, claimed: Claimed, event: Refresh | Done | Fail | Snooze | Release) -> Changed:
        entry = claimed.stored.entry
        is_recent = entry is not None and self._clock() - (entry.start or 0) < KNOWN_FOR
        changed = self._decide(claimed.key, event, claimed.stored if is_recent else None)
        if changed.outcome is Outcome.LOST:
            doing, stored = type(event).__name__.lower(), changed.stored
            loss = why_lost(stored.entry, stored.gone, claimed.token, self._clock(), self._rules)
            raise ClaimLost(self.declared.name, claimed.key, claimed.token, doing, loss)
        return changed

    def _decide(self, key: str, event: Event, known: Stored | None = None) -> Changed:
        return self.changing.change(key, lambda entry, now: decide(entry, event, now, self._rules), known)

    # Queries

    def is_due(self, registered: Registered) -> bool:
        """Whether an entry is due, regardless of a pause. Claims nothing."""
        self._registered = (self._clock(), registered)
        passed: set[str] = set()
        if self._finds_due(registered, passed):
            return True
        self._lanes.reread(registered, self._clock())
        return self._finds_due(registered, passed)

    @property
    def is_busy(self) -> bool:
        """Whether another thread is claiming; the hints that it does not use are visible only afterwards."""
        return self._lanes.is_busy

    @property
    def next_again(self) -> int | None:
        """See ``Lanes.next_again``."""
        return self._lanes.next_again

    def _finds_due(self, registered: Registered, passed: set[str]) -> bool:
        while hints := self._take(TOGETHER, None, passed, registered):
            left = list(hints)
            try:
                seen = self.parts.entries.recent(hint.key for hint in hints)
                for hint in hints:
                    left.remove(hint)
                    if self._points_to_due(hint, seen[hint.key]):
                        return True
            finally:
                for hint in left:
                    self._lanes.put_back(hint)
        return False

    def _points_to_due(self, hint: Hint, seen: Stored) -> bool:
        hand_on: Callable[[Hint], None] = self._lanes.put_back
        try:
            stored, now = self._newest(hint, seen), self._clock()
            if stored.names(hint):
                entry = notice(stored.entry, now, self._rules).entry
                return entry is not None and is_due(entry, now)
            hand_on = self._unnamed(hint, stored, now)
            return False
        finally:
            hand_on(hint)

    def _newest(self, hint: Hint, seen: Stored) -> Stored:
        """The stored value of a hint's key. ``seen`` may be stale: it must be newer than the hint."""
        if seen.names(hint) or seen.version <= hint.version:
            return self.parts.entries.read(hint.key)
        return seen

    def _unnamed(self, hint: Hint, stored: Stored, now: int) -> Callable[[Hint], None]:
        """The next step of a hint without an entry: a later check if the entry may follow, else settled."""
        if stored.will_name(hint, now, milliseconds(self.declared.settle)):
            return partial(self._lanes.give_back, now=now)
        return self._lanes.settle

    # Claiming

    def _claim_below(
        self, below: int | None, owner: str, limit: int, request: str, registered: Registered
    ) -> list[Claimed]:
        claimed: dict[str, Claimed] = {}
        passed: set[str] = set()
        while len(claimed) < limit:
            try:
                hints = self._take(min(limit - len(claimed), TOGETHER), below, passed, registered)
                if not hints:
                    break
                for got in self._try_all(hints, owner, request):
                    # Two hints of one key lead to the same claim.
                    claimed.setdefault(got.key, got)
            except Exception as error:
                # The claims made before must be returned; a lasting error is raised by the next call.
                if not claimed:
                    raise
                _LOG.warning("%s: a claim got %d of %d: %s", self.declared.name, len(claimed), limit, error)
                break
        return list(claimed.values())

    def _take(self, count: int, below: int | None, passed: set[str], registered: Registered) -> list[Hint]:
        hints: list[Hint] = []
        try:
            while len(hints) < count:
                hint = self._lanes.take(registered, self._clock(), below, passed)
                if hint is None:
                    break
                passed.add(hint.id)
                hints.append(hint)
        except BaseException:
            for hint in hints:
                self._lanes.put_back(hint)
            raise
        return hints

    def _try_all(self, hints: list[Hint], owner: str, request: str) -> Iterator[Claimed]:
        """Claims the due entries of hints.

        The entries are read in one step and their new hints written in one; then the entries are changed one
        by one, in order.
        """
        left = list(hints)
        try:
            seen = self.parts.entries.recent(hint.key for hint in hints)
            waiting = {hint: seen[hint.key] for hint in hints if seen[hint.key].waits_for(hint)}
            known = {hint.key: stored for hint, stored in waiting.items()}
            plans = self.changing.plan(known, lambda key: self._claims(key, owner, request))
            planned = {plan.key: plan for plan in plans if not plan.is_nothing}
            for hint in hints:
                plan = planned.get(hint.key) if hint in waiting else None
                changed = None if plan is None else self.changing.carry_out(plan)
                left.remove(hint)
                if changed is None:
                    got = self._try(hint, seen[hint.key], owner, request)
                else:
                    got = self._ended(hint, changed, owner, request)
                if got is not None:
                    yield got
        finally:
            for hint in left:
                self._lanes.put_back(hint)

    def _try(self, hint: Hint, seen: Stored, owner: str, request: str) -> Claimed | None:
        """Claims the entry of one hint; None where it is not due or another worker was faster."""
        # After an error the next pass must find the hint: the claim may have been made.
        hand_on: Callable[[Hint], None] = self._lanes.put_back
        try:
            stored = self._newest(hint, seen)
            if stored.names(hint):
                changed = self.changing.change(hint.key, self._claims(hint.key, owner, request), stored)
                if not changed.stored.names(hint):
                    hand_on = self._lanes.settle
                return self._claimed(changed, hint.key, owner, request)
            now, token = self._clock(), self._token(hint.key, request)
            hand_on = self._unnamed(hint, stored, now)
            entry = notice(stored.entry, now, self._rules).entry
            is_mine = entry is not None and entry.token == token
            return Claimed(hint.key, token, owner, stored) if is_mine else None
        finally:
            hand_on(hint)

    def _ended(self, hint: Hint, changed: Changed, owner: str, request: str) -> Claimed | None:
        if changed.stored.names(hint):
            self._lanes.put_back(hint)
        else:
            self._lanes.settle(hint)
        return self._claimed(changed, hint.key, owner, request)

    def _claimed(self, changed: Changed, key: str, owner: str, request: str) -> Claimed | None:
        if changed.outcome is not Outcome.CLAIMED:
            return None
        return Claimed(key, self._token(key, request), owner, changed.stored)

    def _claims(self, key: str, owner: str, request: str) -> Decide:
        event = Claim(self._token(key, request), owner)
        return lambda entry, now: decide(entry, event, now, self._rules)

    def _token(self, key: str, request: str) -> str:
        return f"{request}-{self.parts.entries.hash_of(key)}"

    def _read_registry(self) -> Registered:
        now = self._clock()
        if self._registered is None or now - self._registered[0] >= self._registry_for:
            self._registered = (now, self.parts.registry.read())
        return self._registered[1]

    def _check(self, owner: str, limit: int, request: str | None) -> None:
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_AT_ONCE:
            problem = f"`limit` is {limit!r}, but must be a whole number from 1 to {MOST_AT_ONCE}"
            raise BadRequest(self.declared.name, problem)
        for name, text in (("owner", owner), ("request", request)):
            if text is not None and (not isinstance(text, str) or not 0 < len(text) <= LONGEST_TOKEN):
                problem = f"`{name}` must be text of 1 to {LONGEST_TOKEN} characters"
                raise BadRequest(self.declared.name, problem)
