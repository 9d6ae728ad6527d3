"""The steps of delivering one binding to a writer: write its parts, finish it, settle a position.

Each step returns a ``PartDone``. A failure of a message, of the target or of the log is part of the result; a
lost lease is raised. Nothing here moves a position or closes a gate.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from tidemark.delivery.published_log import LogUnreadable, PublishedLog, read_messages
from tidemark.delivery.state.lease import LeaseLost, WriterTicket
from tidemark.delivery.writer import BadMessage, Part, TargetReplaced, Writer, Writing, Written
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile

AT_ONCE = 8
"""How many parts are written at once in this process."""


@dataclass(frozen=True, slots=True)
class PartDone:
    """The outcome of one step; pickled back from the process that ran it.

    Attributes:
        written: The counts of what was written.
        bad: The lowest message that the writer cannot process.
        failure: The error of the target.
        unreadable: Why the log could not be read.
        replaced: The error for a target that was replaced by another one of the same name.
    """

    written: Written = field(default_factory=Written)
    bad: BadMessage | None = None
    failure: str | None = None
    unreadable: str | None = None
    replaced: TargetReplaced | None = None

    @property
    def is_trouble(self) -> bool:
        """Whether the step failed."""
        return bool(self.bad or self.failure or self.unreadable or self.replaced)

    def with_log(self) -> "PartDone":
        """Returns itself; raises where the log could not be read or the target was replaced."""
        if self.unreadable is not None:
            raise LogUnreadable(self.unreadable)
        if self.replaced is not None:
            raise self.replaced
        return self


WriteParts = Callable[[Writer, Sequence[Part], LogFolder, Collection[int], WriterTicket], list[PartDone]]
"""Writes all parts of a binding, in this process or elsewhere."""


def write_part(
    writer: Writer, part: Part, log: LogFolder, acknowledged: Collection[int], ticket: WriterTicket
) -> PartDone:
    """Write one part with its messages from the log."""
    return write_part_of(writer, part, Writing(read_messages(log, part, acknowledged), ticket))


def write_part_of(writer: Writer, part: Part, writing: Writing) -> PartDone:
    """Write one part with these messages; every failure but a lost lease is part of the result."""
    return _result_of(lambda: writer.write(part, writing))


def discard_acknowledged(
    writer: Writer,
    binding: Binding,
    files: Sequence[LogFile],
    log: PublishedLog,
    acknowledged: Collection[int],
    position: int,
    ticket: WriterTicket,
) -> PartDone:
    """Remove from the target what earlier attempts wrote of messages that an operator has acknowledged since.

    The process that acknowledged a message may have crashed before cleaning up, or the target may have
    failed.
    """
    first = max(position + 1, binding.base)
    passed = sorted(id_ for id_ in acknowledged if first <= id_ <= binding.end)

    def discard() -> None:
        for id_ in passed:
            one = Part(binding, tuple(files), first_id=id_, last_id=id_)
            for batch in read_messages(log.folder, one, ()):
                for message in batch.to_pylist():
                    ticket.check()
                    writer.discard(message)

    return _result_of(discard)


def finish(
    writer: Writer,
    binding: Binding,
    files: Sequence[LogFile],
    log: PublishedLog,
    acknowledged: Collection[int],
    ticket: WriterTicket,
) -> PartDone:
    """Finish a binding whose parts are all written, and settle its end."""
    whole = Part(binding, tuple(files))
    writing = Writing(read_messages(log.folder, whole, acknowledged), ticket)
    done = _result_of(lambda: writer.finish(whole, writing))
    reach(FaultPoint.DELIVER_FINISHED)
    return done if done.is_trouble else settle(writer, binding, binding.end, ticket)


def settle(writer: Writer, binding: Binding, position: int, ticket: WriterTicket) -> PartDone:
    """Let the target publish a position to its readers, before the position is committed."""
    done = _result_of(lambda: writer.settle(binding, position, ticket))
    reach(FaultPoint.DELIVER_SETTLED)
    return done


def _result_of(step: Callable[[], Written | None]) -> PartDone:
    try:
        return PartDone(step() or Written())
    except LeaseLost:
        raise
    except BadMessage as bad:
        return PartDone(bad=bad)
    except LogUnreadable as error:
        return PartDone(unreadable=str(error))
    except TargetReplaced as error:
        return PartDone(replaced=error)
    except Exception as error:
        return PartDone(failure=error_text(error))


def error_text(error: Exception) -> str:
    """The text of an error; an error of another library gets its type in front."""
    if isinstance(error, TidemarkError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def total_of(results: Sequence[PartDone]) -> PartDone:
    """The outcome of all parts: the sum of the counts, the lowest bad message, and the first failure."""
    return PartDone(
        reduce(add, (done.written for done in results), Written()),
        min((done.bad for done in results if done.bad), key=lambda one: one.id, default=None),
        next((done.failure for done in results if done.failure), None),
    )


def write_parts_here(
    writer: Writer, parts: Sequence[Part], log: LogFolder, acknowledged: Collection[int], ticket: WriterTicket
) -> list[PartDone]:
    """Write the parts one after the other in this process."""
    return [write_part(writer, part, log, acknowledged, ticket) for part in parts]


def write_parts_at_once(
    writer: Writer, parts: Sequence[Part], log: LogFolder, acknowledged: Collection[int], ticket: WriterTicket
) -> list[PartDone]:
    """Write the parts in threads of this process: for a few messages, and a writer that mostly waits."""
    with ThreadPoolExecutor(min(len(parts), AT_ONCE), "part") as threads:
        return list(threads.map(lambda part: write_part(writer, part, log, acknowledged, ticket), parts))
