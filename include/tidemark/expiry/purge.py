"""Purging: the last look, the decision on record, the plain purge action, the outcome on record.

May be killed anywhere and started again with the same run: what was sent is recognised by the run that its
origin names, and not sent again. Should a purge arrive twice all the same, the second one finds no entity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol
from uuid import uuid4

from tidemark.expiry.decision import LeftAlone, judge
from tidemark.expiry.last_look import Look, LookedAt, Looking
from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.expiry.plan import Expired
from tidemark.expiry.report import Spared
from tidemark.expiry.run_record import Batch, Intended, RunRecord
from tidemark.faults import FaultPoint, reach

AT_ONCE = 500
"""Entities that one look is for: the more, the longer what it saw has to hold."""


class Sender(Protocol):
    """What takes purges to Kafka."""

    def send(self, purges: Sequence[Intended]) -> Sequence[int]:
        """Send each to its partition, with an origin that names the run; their offsets, all acknowledged."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What became of the entities of a run."""

    sent: tuple[SentPurge, ...]
    spared: tuple[Spared, ...]
    looked_from: int
    """No purge of the run, and no append it overtook, has an id at or below this one."""


@dataclass(frozen=True)
class Purging:
    """One run."""

    run: str
    look: Look
    sender: Sender
    record: RunRecord
    at_once: int = AT_ONCE

    def purge(self, found: Sequence[Expired]) -> Purged:
        """Purge these entities, but for those of which there is news."""
        self.recover()
        done = self.outcome()
        settled = {(one.topic, one.key) for one in done.sent} | {(one.topic, one.key) for one in done.spared}
        left = [one for one in found if (one.topic, one.key) not in settled]
        number, attempt = len(self.record.batches()), uuid4().hex[:8]
        for topic, of_topic in _by_topic(left):
            looking = Looking(self.look, topic, {one.key for one in of_topic})
            for start in range(0, len(of_topic), self.at_once):
                some = of_topic[start : start + self.at_once]
                looked = looking.at({one.key for one in some})
                intended, spared = decide(some, looked)
                self._send(Batch(number, attempt, topic, looked.log_end, tuple(intended), tuple(spared)))
                number += 1
        return self.outcome()

    def recover(self) -> None:
        """Find out what an attempt that was killed has sent, and keep it."""
        for batch in self.record.batches():
            if self.record.sent(batch) is None:
                self.record.settle(batch, self._find_sent(batch))
                reach(FaultPoint.EXPIRY_RECOVERED)

    def outcome(self) -> Purged:
        """What the run has come to so far."""
        batches = self.record.batches()
        sent = [one for batch in batches for one in self.record.sent(batch) or ()]
        spared = [one for batch in batches for one in batch.spared]
        looked_from = min((batch.log_end for batch in batches), default=self.look.log.end)
        return Purged(tuple(sent), tuple(spared), looked_from)

    def _send(self, batch: Batch) -> None:
        self.record.intend(batch)
        reach(FaultPoint.EXPIRY_INTENDED)
        offsets = self.sender.send(batch.intended)
        reach(FaultPoint.EXPIRY_SENT)
        sent = [one.sent_at(offset) for one, offset in zip(batch.intended, offsets, strict=True)]
        self.record.settle(batch, sent)
        reach(FaultPoint.EXPIRY_RECORDED)

    def _find_sent(self, batch: Batch) -> list[SentPurge]:
        """What a batch has sent before it was killed: purges of ours beyond what it had looked at."""
        keys = {one.key for one in batch.intended}
        newer = self.look.at(batch.topic, keys, after=batch.log_end).newer if keys else {}
        sent = []
        for one in batch.intended:
            for seen in newer.get(one.key, ()):
                is_ours = seen.why is LeftAlone.PURGE and seen.origin == self.run
                if is_ours and seen.partition == one.partition and seen.offset >= one.checked:
                    sent.append(one.sent_at(seen.offset))
                    break
        return sent


def decide(some: Sequence[Expired], looked: LookedAt) -> tuple[list[Intended], list[Spared]]:
    """Who of these entities is purged, and who is left alone."""
    if looked.is_topic_gone:
        return [], [Spared(one.day, one.topic, one.key, LeftAlone.TOPIC_GONE) for one in some]
    intended, spared = [], []
    for one in some:
        head = looked.heads.get(one.key)
        verdict = judge(one.day, head, looked.newer.get(one.key, ()))
        if head is None or verdict.left_alone:
            why, news = verdict.left_alone or LeftAlone.GONE, verdict.newer
            place = (news.id, news.partition, news.offset) if news else (None, None, None)
            spared.append(Spared(one.day, one.topic, one.key, why, *place))
        else:
            checked = looked.ends[head.partition]
            intended.append(Intended(one.topic, one.key, one.day, head.partition, checked, one.rows))
    return intended, spared


def _by_topic(found: Sequence[Expired]) -> Iterator[tuple[str, list[Expired]]]:
    ordered = sorted(found, key=lambda one: (one.topic, one))
    return ((topic, list(some)) for topic, some in groupby(ordered, lambda one: one.topic))
