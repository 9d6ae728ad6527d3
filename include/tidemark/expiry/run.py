"""One run over the expired entities of a journal: plan, purge, wait, report. Each step may be repeated.

Nothing is written to the journal's tables: purges go to Kafka like any producer's, and replication does the
rest.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from itertools import islice
from typing import Any

from tidemark.clock import Clock, wall_clock
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer_topics import recreated_topics
from tidemark.expiry.days import WaitsFor, day_end, days_due, days_to_ask, waits_for
from tidemark.expiry.errors import AppendsPurged, NotPlanned, NotToReport
from tidemark.expiry.heads import ExpiryHeads, find_expired
from tidemark.expiry.last_look import Look, TopicTail, read_logged
from tidemark.expiry.overtaken_appends import (
    Logged,
    Overtaken,
    SentPurge,
    find_overtaken,
    find_purges,
    pins_of,
)
from tidemark.expiry.plan import Expired, PurgePlan, make_plan, refuse_too_many
from tidemark.expiry.purge import PurgeRun, Purging, Sender
from tidemark.expiry.purges_delivered import last_offsets, read_not_passed
from tidemark.expiry.report import make_report
from tidemark.expiry.run_record import RunRecord
from tidemark.expiry.state import open_days, read_days, run_of, settle_days, unreported_runs
from tidemark.faults import FaultPoint, reach
from tidemark.journal.codec.record import read_action
from tidemark.journal.errors import Undecodable
from tidemark.log.model.binding import NOTHING_YET, TopicPartition
from tidemark.log.state.holds import Hold, add_hold, release_hold
from tidemark.log.state.pins import add_pin, releases

UNSENT = -1
"""The offset of a purge that is wanted, wherever it may be."""


@dataclass(frozen=True)
class ExpiryRun:
    """One run, by the name that its purges carry."""

    run: str
    writer: str
    zone: tzinfo
    positions: Positions
    log: PublishedLog
    heads: ExpiryHeads
    tail: TopicTail
    sender: Sender
    is_ours: Callable[[str], bool]
    clock: Clock = wall_clock

    @property
    def pipeline(self) -> str:
        """Whose entities these are."""
        return self.positions.pipeline

    def days(self, covered: Iterable[date]) -> tuple[date, ...]:
        """The days to ask: those that the run covers, and what earlier ones have left."""
        return days_to_ask(covered, read_days(self.log.control, self.writer).unfinished)

    def due(self, start: int, end: int) -> tuple[date, ...]:
        """The days to ask of a scheduled run with this data interval (µs): also those none was there for."""
        through, control = read_days(self.log.control, self.writer).through, self.log.control
        # Only before the first run of all, because it reads every binding there is.
        bindings = control.bindings_after(NOTHING_YET) if through is None else []
        begun = bindings[0].t if bindings else None
        return self.days(days_due(start, end, through, self.zone, begun))

    def open_days(self, days: Iterable[date], *, is_scheduled: bool = False) -> None:
        """Write the days down first: should this run fail, the next one asks them."""
        open_days(self.log.control, self.writer, days, is_scheduled=is_scheduled)
        reach(FaultPoint.EXPIRY_OPENED)

    def find(self, days: Sequence[date], most: int | None = None) -> list[Expired]:
        """The entities that expired on these days and are still there; not more than so many.

        A writer that never ran has none: nobody knows yet what else is in Kafka.
        """
        state = self.positions.load(self.writer)
        if state is None:
            return []
        recreated = recreated_topics(self.log.control, state)

        def is_ours(topic: str) -> bool:
            # A purge would reach the new topic, whose entities are others, and may be alive.
            return topic not in recreated and self.is_ours(topic)

        return sorted(islice(find_expired(self.heads, days, is_ours), most))

    def look(self, days: Sequence[date], found: Iterable[Expired]) -> PurgePlan:
        """What would be purged; leaves nothing behind."""
        return make_plan(self.pipeline, self.writer, days, found)

    def plan(self, days: Sequence[date], found: Sequence[Expired], ceiling: int) -> PurgePlan:
        """What is to be purged, on record: these entities and no others; refuses suspiciously many."""
        plan = self.look(days, found)
        refuse_too_many(plan, ceiling)
        self._record.keep_planned(found)
        reach(FaultPoint.EXPIRY_PLANNED)
        return plan

    def discard(self) -> None:
        """Forget a plan that nobody wants."""
        self._record.remove()

    def purge(self) -> PurgeRun:
        """Purge the planned, but for those of which there is news."""
        found = self._record.planned()
        if found is None:
            raise NotPlanned(self.pipeline, self.run)
        with self.log.held(self.run) as log:
            # Before anything is sent: what a purge overtakes must still be there when it is looked for.
            add_hold(log.control, Hold(self.run, log.end))
            reach(FaultPoint.EXPIRY_HELD)
            try:
                return self._purging(log).purge(found)
            except Exception:
                if not self._record.batches():  # nothing was sent, so nobody has to wait for this run
                    release_hold(log.control, self.run)
                raise

    def last_offsets(self) -> dict[TopicPartition, int]:
        """The offset of this run's last purge in every partition."""
        return last_offsets(self._outcome(self.log).sent)

    def waiting(self) -> dict[TopicPartition, int]:
        """The offsets of this run's purges that the writer has not finished with."""
        return read_not_passed(self.log.control, self.positions, self.writer, self.last_offsets())

    def report(self, days: Sequence[date]) -> dict[str, Any]:
        """What the run came to, on record; fails where a purge overtook an append, after pinning it."""
        control = self.log.control
        # A run that is repeated when all is over has nothing to add to what it came to.
        kept = None if self._record.batches() else run_of(control, self.run)
        with self.log.held(self.run) as log:
            outcome = self._outcome(log)
            lost = self._overtaken(log, outcome)
        for pin in pins_of(lost, self.run, self.clock()):
            add_pin(control, pin, held_by=self.run)
            reach(FaultPoint.EXPIRY_PINNED)
        states = self._days(days)
        report = make_report(self.pipeline, self.writer, self.run, states, outcome.sent, outcome.spared, lost)
        settle_days(control, report, self.clock(), is_kept=kept is not None)
        reach(FaultPoint.EXPIRY_REPORTED)
        release_hold(control, self.run)
        reach(FaultPoint.EXPIRY_RELEASED)
        if lost:
            raise AppendsPurged(self.pipeline, lost)
        self._record.remove()
        return kept or report.to_dict()

    def finish(self) -> dict[str, Any]:
        """The report of a run that cannot report itself any more; its days are left to later runs."""
        if self.run not in unreported_runs(self.log.control):
            raise NotToReport(self.pipeline, self.run, "is no run that has sent purges and not reported")
        with self.log.held(self.run) as log:
            self._purging(log).recover()
        if waiting := self.waiting():
            places = ", ".join(f"{topic}/{partition}@{last}" for (topic, partition), last in waiting.items())
            raise NotToReport(self.pipeline, self.run, f"has purges that are not replicated yet: {places}")
        return self.report(())

    def _days(self, days: Sequence[date]) -> dict[date, WaitsFor | None]:
        state = self.positions.load(self.writer)
        position = state.position if state else NOTHING_YET
        upper = self.log.control.bindings_head().upper
        waiting = [binding.t for binding in self.log.control.bindings_after(position)]
        # After the position: what was written meanwhile is found.
        return {
            day: waits_for(day_end(day, self.zone), upper, waiting, len(self.find([day]))) for day in days
        }

    def _overtaken(self, log: PublishedLog, outcome: PurgeRun) -> list[Overtaken]:
        """The appends that purges of this run overtook; not those that a person has dealt with."""
        wanted = [one.sent_at(UNSENT) for batch in self._record.batches() for one in batch.intended]
        messages = list(_read_entities(log, outcome.looked_from, wanted))
        purges = [*outcome.sent, *find_purges(wanted, self.run, messages)]
        released = {release.pin.id for release in releases(log.control)}
        return [one for one in find_overtaken(purges, messages) if one.id not in released]

    def _outcome(self, log: PublishedLog) -> PurgeRun:
        return self._purging(log).outcome()

    def _purging(self, log: PublishedLog) -> Purging:
        look = Look(self.writer, self.positions, log, self.heads, self.tail)
        return Purging(self.run, look, self.sender, self._record)

    @property
    def _record(self) -> RunRecord:
        return RunRecord(self.pipeline, self.log.folder.root, self.run)


def _read_entities(log: PublishedLog, after: int, wanted: Iterable[SentPurge]) -> Iterable[Logged]:
    keys: dict[str, set[str]] = {}
    for one in wanted:
        keys.setdefault(one.topic, set()).add(one.key)
    for topic, entities in keys.items():
        for record in read_logged(log, after, topic, entities):
            times = (record.timestamp, record.timestamp_type)
            try:
                action = read_action(record.key, record.value, *times, record.headers)
            except Undecodable:
                continue  # stops the writer, which asks a person
            if action is not None and record.id is not None:
                yield Logged(record.id, topic, record.partition, record.offset, action)
