"""Dead letters: a copy of every message that a person let pass unwritten, with who, when and why.

Kept twice: as a row in the control plane's keyspace, to be queried, and as a file beside the log, which needs
no Cassandra to be read; where the pipeline declares it, also in a Kafka topic. Copying again changes nothing.
Looking for letters creates nothing: a table that was never made has none.
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
"""The error of a message that was let pass without having failed."""
_OF_MESSAGE = ("topic", "partition", "offset", "timestamp", "key", "value")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message and why nobody wrote it."""

    pipeline: str
    writer: str
    message: Mapping[str, Any]
    """As the log has it."""
    error: str
    """What kept it from being written."""
    reason: str
    who: str
    at: int
    failed: bool = True
    """Whether it was tried; letters of older versions do not say."""

    @property
    def id(self) -> int:
        """The message's place in the log."""
        return int(self.message["id"])

    def to_dict(self) -> dict[str, Any]:
        """The form of files and ``--json``."""
        return {**asdict(self), "message": readable(dict(self.message))}

    @classmethod
    def from_dict(cls, letter: Mapping[str, Any]) -> "DeadLetter":
        """The letter that ``to_dict`` wrote, also an older version's."""
        return cls(**{**letter, "message": restored(letter["message"])})


class DeadLetters(Protocol):
    """Where dead letters go."""

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """Copy them, durably."""


class DeadLetterFiles:
    """One JSON file per message, in ``dead_letters/<writer>/`` of the log's folder."""

    def __init__(self, pipeline: str, root: str) -> None:
        self._folder = Folder(pipeline, root)

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        for letter in letters:
            path = f"dead_letters/{letter.writer}/{letter.id:020d}.json"
            text = json.dumps(letter.to_dict(), ensure_ascii=False, indent=1, sort_keys=True)
            # Whoever comes after an attempt that was killed may have another reason.
            self._folder.replace(path, text.encode() + b"\n")

    def find(self, writer: str) -> list[DeadLetter]:
        """The letters of a writer that are there, in the order of their ids."""
        paths = self._folder.list_files(f"dead_letters/{writer}", ".json")
        return [DeadLetter.from_dict(json.loads(self._folder.read(path))) for path in paths]

    def find_writers(self) -> list[str]:
        """The writers that have letters, whether a file still declares them or not."""
        found = {one.path.split("/")[1] for one in self._folder.walk("dead_letters")}
        return sorted(name for name in found if "/" not in name)


class DeadLetterTable:
    """The table ``dead_letter``, made with the first letter: a plan that nobody carries out makes nothing."""

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
        """The letters of a writer that are there, in the order of their ids."""
        columns = "message, error, reason, who, at"
        where = "pipeline = %s AND writer = %s"
        try:
            rows = self._connect().execute(
                f"SELECT {columns} FROM {self._keyspace}.dead_letter WHERE {where}", (pipeline, writer)
            )
        except InvalidRequest:  # the table is made with the first letter
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
    """Several places at once, in order."""

    def __init__(self, *places: DeadLetters) -> None:
        self._places = places

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """See ``DeadLetters.keep``."""
        for place in self._places:
            place.keep(letters)
