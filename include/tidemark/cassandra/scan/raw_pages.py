"""Pages of a result with undecoded cells: the only module that knows how to get them from the driver.

The driver decodes rows in a protocol handler of the session. This handler leaves the cells as bytes, so that
whole columns can be decoded at once. (The driver's own numpy handler does not work: with numpy 2.4 it returns
no rows, and no error.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar
from weakref import WeakKeyDictionary

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.cqltypes import BytesType
from cassandra.protocol import HAVE_CYTHON, ProtocolHandler, ResultMessage, read_int
from cassandra.query import BoundStatement, PreparedStatement

Row = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value for a bind marker that is in CQL's bytes already, without a length prefix."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one response."""

    rows: list[Row]
    size: int
    """In bytes, on the wire."""
    next: bytes | None
    """Where the next page begins; None after the last."""


class _RawResult(ResultMessage):  # type: ignore[misc]  # the driver has no types
    """A result with undecoded cells. (The driver registers message classes without an underscore.)"""

    def recv_results_rows(
        self, f: BinaryIO, protocol_version: int, user_type_map: Any, result_metadata: Any, encryption: Any
    ) -> None:
        self.recv_results_metadata(f, user_type_map)
        columns = self.column_metadata or result_metadata
        self.column_names = [column[2] for column in columns]
        self.column_types = [column[3] for column in columns]
        data = f.read()
        self.parsed_rows = Page(
            _read_rows(data, self.column_names, protocol_version), len(data), self.paging_state
        )


class _RawHandler(ProtocolHandler):  # type: ignore[misc]  # the driver has no types
    message_types_by_opcode: ClassVar[dict[int, Any]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultMessage.opcode: _RawResult,
    }


def _read_rows_in_python(data: bytes, names: list[str], protocol_version: int) -> list[Row]:
    from io import BytesIO

    stream = BytesIO(data)
    count = read_int(stream)
    return [ResultMessage.recv_row(stream, len(names)) for _ in range(count)]


def _read_rows_in_c(data: bytes, names: list[str], protocol_version: int) -> list[Row]:
    from cassandra.bytesio import BytesIOReader
    from cassandra.deserializers import make_deserializers
    from cassandra.obj_parser import ListParser
    from cassandra.parsing import ParseDesc

    types = [BytesType] * len(names)
    layout = ParseDesc(names, types, None, [None] * len(names), make_deserializers(types), protocol_version)
    rows: list[Row] = ListParser().parse_rows(BytesIOReader(data), layout)
    return rows


_read_rows: Callable[[bytes, list[str], int], list[Row]] = (
    _read_rows_in_c if HAVE_CYTHON else _read_rows_in_python
)


def bind_values(statement: PreparedStatement, values: Sequence[Any]) -> BoundStatement:
    """A statement with its values, some of which may be ``Encoded``."""
    bound = statement.bind([None if isinstance(value, Encoded) else value for value in values])
    for place, value in enumerate(values):
        if isinstance(value, Encoded):
            bound.values[place] = value.data
    return bound


class RawSession:
    """Sends prepared statements and returns pages of undecoded rows."""

    def __init__(self, session: Session) -> None:
        # A session of its own over the same cluster: other callers need decoded rows.
        self._session = session.cluster.connect()
        self._session.client_protocol_handler = _RawHandler
        self._profile = self._session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=lambda names, page: page
        )

    def prepare(self, query: str, consistency: int) -> PreparedStatement:
        """Prepare an idempotent statement."""
        statement = self._session.prepare(query)
        statement.consistency_level, statement.is_idempotent = consistency, True
        return statement

    def ask(
        self,
        statement: PreparedStatement,
        values: Sequence[Any],
        rows: int,
        page: bytes | None,
        answered: Callable[[Page | None, Exception | None], None],
        host: Any = None,
    ) -> None:
        """Request one page of at most so many rows; the driver's thread calls ``answered``."""
        bound = bind_values(statement, values)
        bound.fetch_size = rows
        future = self._session.execute_async(
            bound, execution_profile=self._profile, paging_state=page, host=host
        )
        future.add_callbacks(lambda found: answered(found, None), lambda error: answered(None, error))


_opened: WeakKeyDictionary[Session, RawSession] = WeakKeyDictionary()


def raw_session(session: Session) -> RawSession:
    """The raw session that belongs to a session; made on first use."""
    if session not in _opened:
        _opened[session] = RawSession(session)
    return _opened[session]
