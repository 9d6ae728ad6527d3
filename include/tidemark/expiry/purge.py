"""Purging, batch by batch: the last check, the recorded intention, the purge actions, the recorded outcome.

A run may be killed at any point and started again under the same name: purges that it sent are recognised by
their origin, which names the run, and are not sent again. A purge that arrives twice nevertheless does no
harm, because the second one finds no entity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol
from uuid import uuid4

from tidemark.expiry.decision import LeftAlone, judge
from tidemark.expiry.last_look import LastLook, Look, Looking
from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.expiry.plan import Expired
from tidemark.expiry.report import Spared
from tidemark.expiry.run_record import Batch, Intended, RunRecord
from tidemark.faults import FaultPoint, reach

AT_ONCE = 500
"""The most entities of one batch. In a larger batch, more time passes between the check and the purges."""


class Sender(Protocol):
    """Sends purges to Kafka."""

    def send(self, purges: Sequence[Intended]) -> Sequence[int]:
        """Sends each to its partition, with the run as origin.

        Returns their offsets once all are acknowledged.
        """


@dataclass(frozen=True, slots=True)
class PurgeRun:
    """The outcome of a run so far."""

    sent: tuple[SentPurge, ...]
    spared: tuple[Spared, ...]
    """The entities that were left alone."""
    looked_from: int
    """All purges of the run, and all appends they overtook, have ids above this one."""


@dataclass(frozen=True)
class Purging:
    """The purging of one run."""

    run: str
    """The run's name, which is the origin of its purges."""
    look: Look
    sender: Sender
    record: RunRecord
    at_once: int = AT_ONCE

    def purge(self, found: Sequence[Expired]) -> PurgeRun:
        """Sends purges for these entities, except those that have newer messages or were settled earlier."""
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
        """Finds the purges that a killed attempt sent without recording them, and records them."""
        for batch in self.record.batches():
            if self.record.sent(batch) is None:
                self.record.settle(batch, self._find_sent(batch))
                reach(FaultPoint.EXPIRY_RECOVERED)

    def outcome(self) -> PurgeRun:
        """The outcome of the run so far, from its record."""
        batches = self.record.batches()
        sent = [one for batch in batches for one in self.record.sent(batch) or ()]
        spared = [one for batch in batches for one in batch.spared]
        looked_from = min((batch.log_end for batch in batches), default=self.look.log.end)
        return PurgeRun(tuple(sent), tuple(spared), looked_from)

    def _send(self, batch: Batch) -> None:
        self.record.intend(batch)
        reach(FaultPoint.EXPIRY_INTENDED)
        offsets = self.sender.send(batch.intended)
        reach(FaultPoint.EXPIRY_SENT)
        sent = [one.sent_at(offset) for one, offset in zip(batch.intended, offsets, strict=True)]
        self.record.settle(batch, sent)
        reach(FaultPoint.EXPIRY_RECORDED)

    def _find_sent(self, batch: Batch) -> list[SentPurge]:
        """The purges that a killed batch sent: those with this run's origin beyond the offsets it checked."""
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


def decide(some: Sequence[Expired], looked: LastLook) -> tuple[list[Intended], list[Spared]]:
    """The decision for each of these entities: the purges to send, and the entities that are left alone."""
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
