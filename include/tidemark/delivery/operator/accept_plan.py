"""The consequence for each writer when a loss is accepted, as the plan of the acceptance shows it.

Decided by the same rules that deliveries follow (``writer_topics.py``), from declarations and from what the
control plane knows. Read-only.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tidemark.delivery.renditions.selection import active_state
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import TopicStart, WriterState
from tidemark.delivery.writer_topics import taken_number
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.model.recreated_topics import WHOLE_TOPIC, Recreations
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import AnyWriter, JournalDeclaration, Pipeline, WriterStart


class Becomes(StrEnum):
    """What a writer does after an acceptance.

    Attributes:
        GOES_ON: It continues with all its topics.
        LEAVES_OUT: It continues without the recreated topics.
        STOPS: Its gate closes at the first message of a recreated or truncated topic.
    """

    GOES_ON = "goes on"
    LEAVES_OUT = "leaves out"
    STOPS = "stops"


@dataclass(frozen=True)
class Consequence:
    """The consequence of an acceptance for one writer.

    Attributes:
        writer: The writer's name.
        kind: Its kind.
        becomes: What it does afterwards.
        topics: The topics that it leaves out, or stops at.
        said: The consequence in words, as the rest of a sentence about the writer.
    """

    writer: str
    kind: str
    becomes: Becomes
    topics: tuple[str, ...]
    said: str

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "writer": self.writer,
            "kind": self.kind,
            "becomes": self.becomes.value,
            "topics": list(self.topics),
            "said": self.said,
        }

    def __str__(self) -> str:
        return f"writer {self.writer} ({self.kind}) {self.said}"


def read_consequences(
    pipeline: Pipeline, control: LogControl, positions: Positions, losses: Sequence[Loss]
) -> list[Consequence]:
    """The consequences for all writers of a pipeline's file."""
    head = control.bindings_head()
    bound = {topic for topic, _ in head.reached} | head.topic_ids.keys()
    known = Recreations.of(control.accepted_losses())
    topics = bound | set(pipeline.source.kafka.topics)
    return [
        find_consequence(declared, active_state(positions, declared.name), losses, known, topics)
        for declared in pipeline.writers
    ]


def find_consequence(
    declared: AnyWriter,
    state: WriterState | None,
    losses: Sequence[Loss],
    known: Recreations,
    topics: Iterable[str],
) -> Consequence:
    """The consequence for one writer.

    ``known`` are the recreations that were accepted before; ``topics`` are those of the pipeline.
    """

    def found(becomes: Becomes, said: str, about: Iterable[str] = ()) -> Consequence:
        return Consequence(declared.name, declared.kind, becomes, tuple(about), said)

    if not isinstance(declared, JournalDeclaration):
        return found(Becomes.GOES_ON, "goes on, and gets what is captured from here on")
    admitted = [loss for loss in losses if re.search(declared.namespaces, loss.topic)]
    cut = sorted({loss.topic for loss in admitted if loss.kind is LossKind.TRUNCATED})
    if cut:
        said = f"stops at the first message of {_named(cut)}, because offsets that it has begin anew there"
        return found(Becomes.STOPS, said, cut)
    whole = sorted({loss.topic for loss in admitted if loss.kind in WHOLE_TOPIC})
    if not whole:
        return found(Becomes.GOES_ON, "goes on; what was lost never reaches it")
    if state is None and declared.start is WriterStart.RECREATED:
        return found(Becomes.GOES_ON, f"begins with the new topic {_named(whole)}: it never ran before")
    starts: Mapping[str, TopicStart] = state.starts if state else {}
    gone = {topic for topic in known.of_topics if known.newest(topic) > taken_number(starts, topic)}
    held = {topic for topic in topics if re.search(declared.namespaces, topic)}
    way = "a journal writer with a keyspace of its own and `start: recreated` gets everything of it"
    if held <= gone | set(whole):
        said = f"stops at the first message of the new topic {_named(whole)}, and stays stopped; {way}"
        return found(Becomes.STOPS, said, whole)
    said = f"goes on with the other topics and leaves out the new topic {_named(whole)}, with counts; {way}"
    return found(Becomes.LEAVES_OUT, said, whole)


def _named(topics: Sequence[str]) -> str:
    return ", ".join(topics)
