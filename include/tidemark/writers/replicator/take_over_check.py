"""Checks the conditions of a take-over from a kafka-journal replicator in advance. Read-only.

Every condition is one line with its actual state, and says what to do where it is not met. The rules are
those that the later steps enforce: reading the topics, the journal's schema, the consumer groups, the first
binding and the take-over itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.cassandra.schema.steps import AS_DESIGNED
from tidemark.cassandra.session import connect, server_time
from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.connections import Connections
from tidemark.delivery.state.handed_back import TablesHandedBack
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.errors import TidemarkError
from tidemark.journal_tables.schema.found import read_keyspace
from tidemark.journal_tables.schema.layout import DATA, Found, name_of
from tidemark.journal_tables.schema.plan import plan, refuse
from tidemark.journal_tables.statements import JournalTables, Pointer, are_there
from tidemark.kafka.consumer_groups import find_members, replicator_group
from tidemark.log.bind import ClockOff, refuse_clock
from tidemark.log.model.binding import Available, Offsets, TopicPartition
from tidemark.log.source import CompactedTopic, NoSuchTopic, read_available
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration, Pipeline, SourceStart, source_topics
from tidemark.writers.replicator.take_back import objection_to


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a take-over."""

    what: str
    found: str
    """The actual state, and what to do where the condition is not met."""
    is_met: bool = True


@dataclass(frozen=True, slots=True)
class TakeOverCheck:
    """All conditions of one journal's take-over."""

    pipeline: str
    writer: str
    conditions: tuple[Condition, ...]
    """All conditions, met or not, in the order in which an operator should deal with them."""

    @property
    def is_ready(self) -> bool:
        """Whether all conditions are met."""
        return all(one.is_met for one in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``--json`` prints."""
        conditions = [asdict(one) for one in self.conditions]
        place = {"pipeline": self.pipeline, "writer": self.writer}
        return {**place, "ready": self.is_ready, "conditions": conditions}

    def to_lines(self) -> Iterator[str]:
        """The conditions and the verdict as lines of text for operators."""
        width = max(len(one.what) for one in self.conditions)
        for one in self.conditions:
            yield f"{'ok ' if one.is_met else 'NO '} {one.what:<{width}}  {one.found}"
        left = sum(not one.is_met for one in self.conditions)
        verdict = "everything is ready for a take-over." if not left else f"{left} not met; see NO above."
        yield f"{self.pipeline}/{self.writer}: {verdict}"


def check_take_over(
    pipeline: Pipeline,
    declared: JournalDeclaration,
    connections: Connections,
    control: LogControl,
    positions: Positions,
    clock: Clock = wall_clock,
) -> TakeOverCheck:
    """Checks the current state of topics, consumer groups, keyspace, clocks, pointers and writer."""
    session, conditions = connect(connections.cassandra[declared.connection]), list[Condition]()
    available = Available({}, {})
    try:
        available = read_available(source_topics(pipeline), connections.kafka)
        topics = sorted({topic for topic, _ in available.offsets})
        conditions += [Condition(f"cleanup.policy of {topic}", "delete") for topic in topics]
    except (CompactedTopic, NoSuchTopic) as error:
        conditions.append(Condition(f"topic {error.topic}", str(error), is_met=False))
        topics = [error.topic]
    conditions += judge_groups(topics, find_members(connections.kafka, topics))
    found = read_keyspace(session, declared)
    conditions += judge_keyspace(pipeline.name, declared, found)
    conditions.append(judge_clocks(pipeline.name, clock(), server_time(session)))
    places = sorted(place for place in available.offsets if re.search(declared.namespaces, place[0]))
    has_tables = are_there(session, declared)
    pointers = JournalTables.of(session, declared).read_timed_pointers(places) if has_tables else {}
    state, reached = positions.load(declared.name), control.bindings_head().reached
    conditions += judge_pointers({place: available.offsets[place] for place in places}, pointers)
    taken = {place: offset for place, offset in reached.items() if re.search(declared.namespaces, place[0])}
    conditions.append(
        judge_writer(pipeline, declared, state, positions, objection_to(taken, pointers, clock()))
    )
    return TakeOverCheck(pipeline.name, declared.name, tuple(conditions))


def judge_groups(topics: Iterable[str], members: Mapping[str, tuple[str, ...]]) -> Iterator[Condition]:
    """The conditions that the replicator's consumer groups are empty."""
    for topic in topics:
        group = replicator_group(topic)
        if of := members.get(group):
            found = f"has members: {', '.join(of)}. Stop them before the switch"
            yield Condition(f"group {group}", found, is_met=False)
        else:
            yield Condition(f"group {group}", "is empty")


def judge_keyspace(pipeline: str, declared: JournalDeclaration, found: Found) -> Iterator[Condition]:
    """The conditions that the tables are kafka-journal's, of a known version, and keep tombstones."""
    keyspace = f"keyspace {declared.keyspace}"
    if not found.is_there:
        yield Condition(keyspace, "does not exist. Correct the writer's `keyspace`", is_met=False)
        return
    version = f"schema version {found.version}" if found.version else "no schema version"
    try:
        refuse(pipeline, declared, found, plan(declared, found), AS_DESIGNED.shortest_grace)
        yield Condition(keyspace, version)
    except TidemarkError as error:
        yield Condition(keyspace, str(error), is_met=False)
    for table in (name_of(declared, table) for table in DATA):
        if table in found.graces:
            is_met = found.graces[table] >= AS_DESIGNED.shortest_grace
            yield Condition(f"gc_grace_seconds of {table}", str(found.graces[table]), is_met)


def judge_clocks(pipeline: str, ours: int, theirs: int) -> Condition:
    """The condition that our clock, which gives the write times, agrees with Cassandra's (both in µs)."""
    try:
        refuse_clock(pipeline, ours, theirs)
    except ClockOff as error:
        return Condition("clock", str(error), is_met=False)
    return Condition("clock", f"{abs(ours - theirs) / SECOND:.1f} s away from Cassandra's")


def judge_pointers(
    offsets: Mapping[TopicPartition, Offsets], pointers: Mapping[TopicPartition, Pointer]
) -> Iterator[Condition]:
    """The conditions that Kafka still has all records after the pointers."""
    if offsets and not pointers:
        yield Condition("pointers", "there are none, so there is nothing to take over", is_met=False)
        return
    for (topic, partition), held in sorted(offsets.items()):
        what, pointer = f"pointer of {topic}/{partition}", pointers.get((topic, partition))
        holds = f"the topic holds offsets {held.earliest} to {held.latest - 1}"
        if held.earliest == held.latest:
            holds = f"the topic is empty and goes on at offset {held.latest}"
        if pointer is None:
            yield Condition(what, f"none: it begins at offset {held.earliest}; {holds}")
        elif pointer.offset + 1 < held.earliest:
            lost = f"offsets {pointer.offset + 1} to {held.earliest - 1} are lost: they are in no table"
            yield Condition(what, f"{pointer.offset}; {holds}: {lost}", is_met=False)
        elif pointer.offset >= held.latest:
            other = "it is another topic than the replicator's, made again or truncated"
            yield Condition(what, f"{pointer.offset}; {holds}: {other}", is_met=False)
        else:
            yield Condition(what, f"{pointer.offset}; {holds}")


def judge_writer(
    pipeline: Pipeline,
    declared: JournalDeclaration,
    state: WriterState | None,
    positions: Positions,
    objection: str | None,
) -> Condition:
    """The condition that the writer can begin or continue. ``objection`` is that of ``objection_to``."""
    what = f"writer {declared.name}"
    if state is None:
        if pipeline.source.kafka.start is SourceStart.POINTERS:
            return Condition(what, "never ran: its first run takes over")
        found = "never ran, and would not begin behind the pointers: set `source.kafka.start: pointers`"
        return Condition(what, found, is_met=False)
    if state.gate is None:
        return Condition(what, f"is at id {state.position} and has the tables already")
    if objection:
        return Condition(what, objection, is_met=False)
    handed_back = positions.handed_back(state)
    if handed_back:
        return Condition(what, str(TablesHandedBack(pipeline.name, declared.name, handed_back)))
    return Condition(what, f"is stopped at id {state.position}: {state.gate.reason}")
