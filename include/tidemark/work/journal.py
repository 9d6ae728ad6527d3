"""One work journal: insert, claim, and what a worker says about its claims.

At least once: an entry runs again when its worker was slower than the time limit or died after its work was
done. Of any number of workers that ask for an entry one gets it, and only that one can say what became of it.
"""

import time
from dataclasses import dataclass
from random import uniform
from uuid import uuid4

from tidemark.consensus.objects import ABSENT, Undecided
from tidemark.work.changing import Changed, Changing, Parts
from tidemark.work.decide import Cancel, Claim, Done, Event, Fail, Refresh, Release, Snooze, decide
from tidemark.work.decision import Outcome
from tidemark.work.declaration import milliseconds
from tidemark.work.entries import Stored
from tidemark.work.entry import Entry, Hint, Packet, Request
from tidemark.work.errors import BadRequest, ClaimLost
from tidemark.work.lanes import Lanes
from tidemark.work.lapse import notice
from tidemark.work.merge import merge
from tidemark.work.registry import Registered

MOST_AT_ONCE = 1_000
LONGEST_ERROR = 4_000
LONGEST_TOKEN = 200
REGISTRY_FOR = 1_000
"""Milliseconds for which what the registry says is believed: a pause takes that long to be noticed."""


NOTHING = Stored(None, ABSENT)


def clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def jitter(tries: int) -> None:
    """A moment that grows with every try, and differs between those who compete."""
    time.sleep(uniform(0, 0.002 * 2 ** min(tries, 7)))


@dataclass(frozen=True, slots=True)
class Claimed:
    """An entry that is held: what is to be done, and the token that says by whom."""

    key: str
    token: str
    owner: str
    stored: Stored

    @property
    def entry(self) -> Entry:
        """The entry as it was when this was made."""
        if self.stored.entry is None:
            raise ValueError("a claim of nothing")
        return self.stored.entry

    @property
    def request(self) -> Request:
        """What is to be done; whatever is inserted meanwhile comes afterwards."""
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
        """Whether the last key was new: then the next one is taken to be, which saves a read if it is."""

    def insert(self, packet: Packet) -> Changed:
        """Ask for something to be done; merged with what is asked for already."""
        known = NOTHING if self._expects_new else None
        changed = self.changing.change(
            packet.key, lambda old, now: merge(old, packet, now, self._rules), known
        )
        self._expects_new = changed.stored.version == NOTHING.version + 1
        return changed

    def get(self, key: str) -> Entry | None:
        """The live entry of a key, as everybody has to see it now."""
        return notice(self.parts.entries.read(key).entry, self._clock(), self._rules).entry

    def claim(self, owner: str, limit: int = 1, request: str | None = None) -> list[Claimed]:
        """Up to ``limit`` due entries, each held from now on by ``owner``.

        Asking again with the same ``request`` after an error gives the claim that was in doubt, if it was
        made. Entries from ``slow_from`` on are given only where nothing else was.
        """
        self._check(owner, limit, request)
        registered = self._read_registry()
        if registered.paused is not None:
            return []
        request = request or uuid4().hex
        claimed = self._claim_below(self.declared.slow_from, owner, limit, request, registered)
        if not claimed and self.declared.slow_from is not None:
            claimed = self._claim_below(None, owner, limit, request, registered)
        return claimed

    def refresh(self, claimed: Claimed) -> Claimed:
        """Begin the time limit anew; raises ``ClaimLost``."""
        changed = self._tell(claimed, Refresh(claimed.token))
        return Claimed(claimed.key, claimed.token, claimed.owner, changed.stored)

    def done(self, claimed: Claimed) -> Outcome:
        """Say that it is done; doing so twice, or after it expired, is a success without effect."""
        return self._tell(claimed, Done(claimed.token)).outcome

    def fail(self, claimed: Claimed, error: str) -> Outcome:
        """Say that it could not be done: it is tried again later, or becomes a dead letter."""
        return self._tell(claimed, Fail(claimed.token, error[:LONGEST_ERROR])).outcome

    def snooze(self, claimed: Claimed, until: int) -> Outcome:
        """Give it back until later, without counting it as a failure."""
        if until < 0 or isinstance(until, bool):
            raise BadRequest(self.declared.name, f"`until` is {until!r}, but must be a time")
        return self._tell(claimed, Snooze(claimed.token, until)).outcome

    def release(self, claimed: Claimed) -> Outcome:
        """Give it back as it was."""
        return self._tell(claimed, Release(claimed.token)).outcome

    def cancel(self, key: str) -> Outcome:
        """Forget the key, also what waits behind it; whoever processes it has lost the claim."""
        return self._decide(key, Cancel()).outcome

    def held(self, key: str, token: str) -> Claimed:
        """A claim by its token alone, for whoever has nothing else."""
        stored = self.parts.entries.read(key)
        entry = stored.entry
        owner = entry.owner if entry is not None and entry.token == token else None
        return Claimed(key, token, owner or "", stored)

    def _tell(self, claimed: Claimed, event: Refresh | Done | Fail | Snooze | Release) -> Changed:
        changed = self._decide(claimed.key, event, claimed.stored)
        if changed.outcome is Outcome.LOST:
            doing = type(event).__name__.lower()
            raise ClaimLost(self.declared.name, claimed.key, claimed.token, doing)
        return changed

    def _decide(self, key: str, event: Event, known: Stored | None = None) -> Changed:
        return self.changing.change(key, lambda entry, now: decide(entry, event, now, self._rules), known)

    # Claiming

    def _claim_below(
        self, below: int | None, owner: str, limit: int, request: str, registered: Registered
    ) -> list[Claimed]:
        claimed: list[Claimed] = []
        passed: set[str] = set()
        while len(claimed) < limit:
            hint = self._lanes.take(registered, self._clock(), below, passed)
            if hint is None:
                break
            passed.add(hint.id)
            try:
                got = self._try(hint, owner, request)
                # An older hint of the same key leads to the same claim once more.
                if got is not None and got.key not in {one.key for one in claimed}:
                    claimed.append(got)
            except Undecided:
                # What was got before is somebody's work already; what is in doubt is asked for again.
                if claimed:
                    break
                raise
        return claimed

    def _try(self, hint: Hint, owner: str, request: str) -> Claimed | None:
        """Claim what a hint points to, if an entry names the hint and may be given out."""
        token = f"{request}-{self.parts.entries.hash_of(hint.key)}"
        is_settled = False
        try:
            stored = self.parts.entries.read(hint.key)
            if not stored.names(hint):
                now = self._clock()
                is_settled = not stored.will_name(hint, now, milliseconds(self.declared.settle))
                seen = notice(stored.entry, now, self._rules).entry
                is_mine = seen is not None and seen.token == token
                return Claimed(hint.key, token, owner, stored) if is_mine else None
            changed = self._decide(hint.key, Claim(token, owner), stored)
            is_settled = not changed.stored.names(hint)
            if changed.outcome is Outcome.CLAIMED:
                return Claimed(hint.key, token, owner, changed.stored)
            return None
        finally:
            if is_settled:
                self._lanes.settle(hint)
            else:
                self._lanes.give_back(hint, self._clock())

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
