"""A pipeline that is followed: Kafka, the control plane and the writers in memory, the log on disk."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from tests.support.log_samples import RowsEngine, given_messages
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.follow.round_types import RoundDone, RoundTools
from tidemark.app.follow.rounds import Rounds
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.replicate import RunSource
from tidemark.clock import wall_clock
from tidemark.consensus.objects import Consensus
from tidemark.delivery.binding_steps import WriteParts, write_parts_here
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Available, Binding, Offsets, Slice, TopicPartition
from tidemark.log.source import KafkaUnreachable
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import TERM, Followed, record_followed
from tidemark.log.state.lease import take_log

TOPIC = "orders"
HOLDER = "orders.follow run-1"
MERGING = f"{HOLDER}, merge 0a1b2c3d"


def follow_now(consensus: Consensus) -> None:
    """Make the control plane say that the pipeline is followed."""
    now = wall_clock()
    record_followed(consensus, "orders", Followed(HOLDER, now, deadline=now + TERM))


@contextmanager
def round_that_ends(positions: Positions, writer: str, after: float = 0.2) -> Iterator[None]:
    """A round has this writer, and gives it back after so many seconds."""
    state = positions.load(writer)
    assert state is not None
    timer = threading.Timer(after, take(positions, state, HOLDER).release)
    timer.start()
    yield
    timer.join()


@contextmanager
def merge_that_ends(control: LogControl, after: float = 0.2) -> Iterator[None]:
    """A follow merges small files of this log, and has done so after so many seconds."""
    timer = threading.Timer(after, take_log(control, MERGING).release)
    timer.start()
    yield
    timer.join()


@dataclass
class KafkaInMemory:
    """One topic, whose partitions are lists of values."""

    partitions: dict[int, list[bytes]] = field(default_factory=lambda: {0: [], 1: []})
    topic_id: str = "id-1"
    requests: list[str] = field(default_factory=list)
    is_closed: bool = False

    def send(self, *values: bytes, partition: int = 0) -> None:
        self.partitions[partition] += values

    def make_again(self, *values: bytes) -> None:
        """Delete the topic and create it under the same name, with these values."""
        self.partitions, self.topic_id = {0: list(values), 1: []}, "id-2"

    def available(self) -> Available:
        self.requests.append("available")
        places = {(TOPIC, number): Offsets(0, len(held)) for number, held in self.partitions.items()}
        return Available(places, {TOPIC: self.topic_id})

    def still_available(self, topics: Iterable[str]) -> Available:
        return self.available()

    def ends(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        self.requests.append("ends")
        if gone := [place for place in places if place[1] not in self.partitions]:
            raise KafkaUnreachable("orders", "broker:9092", f"KafkaTimeoutError: {gone}")
        return {place: len(self.partitions[place[1]]) for place in places}

    def close(self) -> None:
        self.is_closed = True

    def messages(self, binding: Binding, s: Slice) -> list[pa.RecordBatch]:
        values = dict(enumerate(self.partitions[s.partition]))
        return [
            given_messages(binding, s.topic, s.partition, {at: values[at] for at in range(s.lower, s.upper)})
        ]


@dataclass
class FollowWorld:
    """The pipeline ``orders``; every call of ``rounds`` is another attempt at a run."""

    house: PipelineWorld
    opened: OpenPipeline
    kafka: KafkaInMemory = field(default_factory=KafkaInMemory)
    judgements: list[Judgement] = field(default_factory=list)
    write_parts: WriteParts = write_parts_here
    is_engine_error: Callable[[Exception], bool] = lambda error: False

    @classmethod
    def given(
        cls, house: PipelineWorld, patch: pytest.MonkeyPatch, *writers: Any, **declared: Any
    ) -> "FollowWorld":
        return cls(house, given_opened(house, patch, *writers, **declared))

    def rounds(self, run_id: str = "run-1") -> Rounds:
        tools = RoundTools(
            RowsEngine(self.kafka.messages, self.judgements),
            self.write_parts,
            lambda positions, name: lambda: positions.load(name),
            self.is_engine_error,
        )
        source = RunSource(self.house.consensus, self.kafka.available, wall_clock, in_process=100)
        return Rounds(self.opened, run_id, tools, source, self.kafka)

    def follow(self, rounds: int = 1, run_id: str = "run-1") -> list[RoundDone]:
        """One attempt at a run with so many whole rounds."""
        attempt = self.rounds(run_id)
        return [attempt.whole() for _ in range(rounds)]
