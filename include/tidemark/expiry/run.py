"""One expiry run over a journal: plan, purge, wait, report. Each step is idempotent.

Never writes to the journal's tables: it sends purges to Kafka like a producer, and replication applies them.
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
"""The offset of a purge whose own offset is not known."""


@dataclass(frozen=True)
class ExpiryRun:
    """One run. ``run`` is its name and the origin of its purges."""

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
        """The pipeline's name."""
        return self.positions.pipeline

    def days(self, covered: Iterable[date]) -> tuple[date, ...]:
        """The days to query: those that the run covers, and those that earlier runs could not finish."""
        return days_to_ask(covered, read_days(self.log.control, self.writer).unfinished)

    def due(self, start: int, end: int) -> tuple[date, ...]:
        """The days to query in a scheduled run with this data interval (µs since 1970).

        Includes the days since the last scheduled run, or since the log begins.
        """
        through = read_days(self.log.control, self.writer).through
        first = next(self.log.bindings.every(), None) if through is None else None
        begun = first.t if first else None
        return self.days(days_due(start, end, through, self.zone, begun))

    def open_days(self, days: Iterable[date], *, is_scheduled: bool = False) -> None:
        """Records the days first, so that the next run queries them if this one fails."""
        open_days(self.log.control, self.writer, days, is_scheduled=is_scheduled)
        reach(FaultPoint.EXPIRY_OPENED)

    def find(self, days: Sequence[date], most: int | None = None) -> list[Expired]:
        """The entities that expired on these days and still have a head, at most ``most`` of them.

        Empty for a writer that never ran: its tables may lack messages that are in Kafka.
        """
        state = self.positions.load(self.writer)
        if state is None:
            return []
        recreated = recreated_topics(self.log.control, state)

        def is_ours(topic: str) -> bool:
            # A purge would reach the re-created topic, whose entities of the same keys may not have expired.
            return topic not in recreated and self.is_ours(topic)

        return sorted(islice(find_expired(self.heads, days, is_ours), most))

    def look(self, days: Sequence[date], found: Iterable[Expired]) -> PurgePlan:
        """The plan for a dry run: nothing is recorded."""
        return make_plan(self.pipeline, self.writer, days, found)

    def plan(self, days: Sequence[date], found: Sequence[Expired], ceiling: int) -> PurgePlan:
        """Records and returns the plan: the run purges these entities and no others.

        Raises TooManyPurges where there are more than ``ceiling``.
        """
        plan = self.look(days, found)
        refuse_too_many(plan, ceiling)
        self._record.keep_planned(found)
        reach(FaultPoint.EXPIRY_PLANNED)
        return plan

    def discard(self) -> None:
        """Removes the plan of a run that is not approved."""
        self._record.remove()

    def purge(self) -> PurgeRun:
        """Sends purges for the planned entities, except those that have newer messages.

        Raises NotPlanned where the run has no plan.
        """
        found = self._record.planned()
        if found is None:
            raise NotPlanned(self.pipeline, self.run)
        with self.log.held(self.run) as log:
            # Taken before anything is sent, so that compaction keeps appends that a purge may overtake.
            add_hold(log.control, Hold(self.run, log.end))
            reach(FaultPoint.EXPIRY_HELD)
            try:
                return self._purging(log).purge(found)
            except Exception:
                if not self._record.batches():  # nothing was sent, so compaction need not wait for this run
                    release_hold(log.control, self.run)
                raise

    def last_offsets(self) -> dict[TopicPartition, int]:
        """The offset of this run's last purge in each partition."""
        return last_offsets(self._outcome(self.log).sent)

    def waiting(self) -> dict[TopicPartition, int]:
        """The offsets of this run's purges that the writer has not delivered."""
        return read_not_passed(self.log.control, self.positions, self.writer, self.last_offsets())

    def report(self, days: Sequence[date]) -> dict[str, Any]:
        """Records and returns the run's report.

        Raises AppendsPurged where purges overtook appends, after pinning those and recording the report.
        """
        control = self.log.control
        # A run that is repeated after its end keeps the report it has.
        kept = None if self._record.batches() else run_of(control, self.run)
        with self.log.held(self.run) as log:
            outcome = self._outcome(log)
            overtaken = self._overtaken(log, outcome)
        for pin in pins_of(overtaken, self.run, self.clock()):
            add_pin(control, pin, held_by=self.run)
            reach(FaultPoint.EXPIRY_PINNED)
        states = self._days(days)
        run = (self.pipeline, self.writer, self.run)
        report = make_report(*run, states, outcome.sent, outcome.spared, overtaken)
        settle_days(control, report, self.clock(), is_kept=kept is not None)
        reach(FaultPoint.EXPIRY_REPORTED)
        release_hold(control, self.run)
        reach(FaultPoint.EXPIRY_RELEASED)
        if overtaken:
            raise AppendsPurged(self.pipeline, overtaken)
        self._record.remove()
        return kept or report.to_dict()

    def finish(self) -> dict[str, Any]:
        """Reports a run that cannot report itself any more. Its days are left to later runs.

        Raises NotToReport where the run has not sent purges, or the writer has not delivered them.
        """
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
        waiting = [binding.t for binding in self.log.bindings.after(position)]
        # The heads are read after the position, so that they include everything up to it.
        return {
            day: waits_for(day_end(day, self.zone), upper, waiting, len(self.find([day]))) for day in days
        }

    def _overtaken(self, log: PublishedLog, outcome: PurgeRun) -> list[Overtaken]:
        """The appends that purges of this run overtook, without those that an operator has released."""
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
                continue  # the writer stops at such a message, and an operator decides
            if action is not None and record.id is not None:
                yield Logged(record.id, topic, record.partition, record.offset, action)
