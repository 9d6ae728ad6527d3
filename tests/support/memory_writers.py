"""Writers whose targets are lists: what tests of delivery give messages to, and let fail."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.delivery.writer import BadMessage, Part, Writer, Writing, Written
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile


@dataclass
class Stream(Writer):
    """Like a topic: takes messages one after the other, and never one at or below the last it has.

    What is skipped once can never be put right here, and what comes twice is not taken twice.
    """

    name: str = "stream"
    kind: str = "stream"
    bad: set[int] = field(default_factory=set)
    """Ids that cannot be understood."""
    refused: set[int] = field(default_factory=set)
    """Ids that the target does not take."""
    broken: list[str] = field(default_factory=list)
    """What the target says to the next calls, one each, before anything is written."""
    unprepared: list[str] = field(default_factory=list)
    """What it says when it is prepared."""
    unfinished: list[str] = field(default_factory=list)
    """What it says when a binding is finished."""
    apart: bool = False
    """Whether every file of a binding is a part of its own, with a stream of its own."""
    dropped: set[int] = field(default_factory=set)
    """Ids that a transform drops."""
    calls: list[list[int]] = field(default_factory=list)
    """The ids that every call of ``write`` was given and came to."""
    streams: dict[str, list[int]] = field(default_factory=dict)
    finished: list[Binding] = field(default_factory=list)
    prepared: int = 0
    before_write: Callable[[Part, Writing], None] = lambda part, writing: None

    @property
    def shape(self) -> Mapping[str, Any]:
        return {"kind": self.kind}

    @property
    def ids(self) -> list[int]:
        """What is there, in the order it came."""
        return self.streams.get("", [])

    def prepare(self) -> None:
        self.prepared += 1
        _complain(self.unprepared)

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        if self.apart:
            return [Part(binding, (file,)) for file in files]
        return [Part(binding, tuple(files))]

    def write(self, part: Part, writing: Writing) -> Written:
        self.before_write(part, writing)
        self.calls.append([])
        _complain(self.broken)
        written = ignored = 0
        for message in _messages(writing):
            id_ = message["id"]
            self.calls[-1].append(id_)
            if id_ in self.bad:
                raise bad_message(self.name, message)
            if id_ in self.refused:
                raise ConnectionError(f"no answer to {id_}")
            stream = self.streams.setdefault(message["topic"] if self.apart else "", [])
            if id_ in self.dropped or (stream and id_ <= stream[-1]):
                ignored += 1
            else:
                stream.append(id_)
                written += 1
        return Written(written, ignored=ignored)

    def finish(self, part: Part, writing: Writing) -> None:
        _complain(self.unfinished)
        self.finished.append(part.binding)

    def is_reachable(self) -> None:
        pass

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        there = any(message["id"] in ids for ids in (self.ids, *self.streams.values()))
        return "it is there already." if there else None


@dataclass
class Shelf(Stream):
    """Like a folder: a binding stands there when it is finished, whole, and never changes again."""

    name: str = "shelf"
    kind: str = "shelf"
    bindings: dict[int, list[int]] = field(default_factory=dict)
    """What is there, by the base of its binding."""

    @property
    def ids(self) -> list[int]:
        return [id_ for _, ids in sorted(self.bindings.items()) for id_ in ids]

    def write(self, part: Part, writing: Writing) -> Written:
        self.before_write(part, writing)
        self.calls.append([])
        _complain(self.broken)
        ids = self._tried(writing, self.calls[-1])
        return Written(len(ids))

    def finish(self, part: Part, writing: Writing) -> None:
        _complain(self.unfinished)
        ids = self._tried(writing)
        there = self.bindings.setdefault(part.binding.base, ids)
        if there != ids:
            raise FileExistsError(f"{there} is there, not {ids}")
        self.finished.append(part.binding)

    def _tried(self, writing: Writing, call: list[int] | None = None) -> list[int]:
        ids: list[int] = [] if call is None else call
        for message in _messages(writing):
            ids.append(message["id"])
            if message["id"] in self.bad:
                raise bad_message(self.name, message)
            if message["id"] in self.refused:
                raise ConnectionError(f"no answer to {message['id']}")
        return ids


def bad_message(writer: str, message: Mapping[str, Any]) -> BadMessage:
    place = (message["topic"], message["partition"], message["offset"], message["id"])
    return BadMessage("orders", writer, *place, "it makes no sense")


def _complain(complaints: list[str]) -> None:
    if complaints:
        raise ConnectionError(complaints.pop(0))


def _messages(writing: Writing) -> Iterable[dict[str, Any]]:
    for batch in writing.batches:
        yield from batch.to_pylist()
