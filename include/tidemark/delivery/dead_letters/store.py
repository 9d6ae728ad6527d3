"""Dead letters: a copy of every message that an operator acknowledged without writing it, with who, when and
why.

Stored twice: as a row in the control plane's keyspace, which can be queried, and as a file beside the log,
which can be read without Cassandra. Where the pipeline declares it, also in a Kafka topic. Copying is
idempotent. Reading creates nothing: a table that does not exist has no letters.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tidemark.cassandra.driver import InvalidRequest, Session
from tidemark.consensus.lightweight import KEYSPACE
from tidemark.log.files.folder import Folder
from tidemark.log.message_text import readable, restored

_TABLE = """
CREATE TABLE IF NOT EXISTS {keyspace}.dead_letter (
    pipeline text, writer text, id bigint,
    topic text, partition int, offset bigint, timestamp bigint,
    key blob, value blob, message text,
    error text, reason text, who text, at bigint,
    PRIMARY KEY ((pipeline, writer), id))
"""
NOT_TRIED = "none: it was not tried"
"""The error of a message that was acknowledged without having failed."""
_OF_MESSAGE = ("topic", "partition", "offset", "timestamp", "key", "value")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message, and why it was not written.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer that did not write it.
        message: The message with the columns of the log.
        error: Why it could not be written; ``NOT_TRIED`` where it did not fail.
        reason: The operator's reason.
        who: The operator.
        at: When it was acknowledged, in µs.
        failed: Whether it was tried and failed; letters of older versions do not say.
    """

    pipeline: str
    writer: str
    message: Mapping[str, Any]
    error: str
    reason: str
    who: str
    at: int
    failed: bool = True

    @property
    def id(self) -> int:
        """The message's id."""
        return int(self.message["id"])

    def to_dict(self) -> dict[str, Any]:
        """The form of files and ``--json``."""
        return {**asdict(self), "message": readable(dict(self.message))}

    @classmethod
    def from_dict(cls, letter: Mapping[str, Any]) -> "DeadLetter":
        """The letter that ``to_dict`` wrote, also in an older version."""
        return cls(**{**letter, "message": restored(letter["message"])})


class DeadLetters(Protocol):
    """A place where dead letters are stored."""

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """Store copies durably. Idempotent."""


class DeadLetterFiles:
    """One JSON file per message, in ``dead_letters/<writer>/`` of the log's folder."""

    def __init__(self, pipeline: str, root: str) -> None:
        self._folder = Folder(pipeline, root)

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        for letter in letters:
            path = f"dead_letters/{letter.writer}/{letter.id:020d}.json"
            text = json.dumps(letter.to_dict(), ensure_ascii=False, indent=1, sort_keys=True)
            # A retry after a crash may have another reason.
            self._folder.replace(path, text.encode() + b"\n")

    def find(self, writer: str) -> list[DeadLetter]:
        """The stored letters of a writer, in id order."""
        paths = self._folder.list_files(f"dead_letters/{writer}", ".json")
        return [DeadLetter.from_dict(json.loads(self._folder.read(path))) for path in paths]

    def find_writers(self) -> list[str]:
        """The writers that have letters, whether a file still declares them or not."""
        found = {one.path.split("/")[1] for one in self._folder.walk("dead_letters")}
        return sorted(name for name in found if "/" not in name)


class DeadLetterTable:
    """The table ``dead_letter``. Created with the first letter, so that a plan alone creates nothing."""

    def __init__(self, connect: Callable[[], Session], keyspace: str = KEYSPACE) -> None:
        self._connect, self._keyspace = connect, keyspace

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        session = self._connect()
        session.execute(_TABLE.format(keyspace=self._keyspace))
        columns = ("pipeline", "writer", "id", *_OF_MESSAGE, "message", "error", "reason", "who", "at")
        places = ", ".join("?" for _ in columns)
        table = f"{self._keyspace}.dead_letter"
        insert = session.prepare(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})")
        for letter in letters:
            copied = [letter.message[name] for name in _OF_MESSAGE]
            whole = json.dumps(readable(dict(letter.message)), ensure_ascii=False)
            why = (letter.error, letter.reason, letter.who, letter.at)
            values = (letter.pipeline, letter.writer, letter.id, *copied, whole)
            session.execute(insert, (*values, *why))

    def find(self, pipeline: str, writer: str) -> list[DeadLetter]:
        """The stored letters of a writer, in id order."""
        columns = "message, error, reason, who, at"
        where = "pipeline = %s AND writer = %s"
        try:
            rows = self._connect().execute(
                f"SELECT {columns} FROM {self._keyspace}.dead_letter WHERE {where}", (pipeline, writer)
            )
        except InvalidRequest:  # the table is created with the first letter
            return []
        return [
            DeadLetter(
                pipeline,
                writer,
                restored(json.loads(row.message)),
                row.error,
                row.reason,
                row.who,
                row.at,
                row.error != NOT_TRIED,
            )
            for row in rows
        ]


class DeadLetterCopies:
    """Several places, written one after the other."""

    def __init__(self, *places: DeadLetters) -> None:
        self._places = places

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        for place in self._places:
            place.keep(letters)
