"""Sends one UNLOGGED BATCH of encoded rows: the only module that knows how the driver sends a message.

The driver chooses the node, applies the time-out and re-prepares statements that a node has forgotten. It
neither retries nor executes speculatively: before each plain write the caller must check its lease.
"""

import logging
from collections.abc import Callable, Set
from struct import Struct
from typing import Any, BinaryIO

from cassandra import DriverException, ProtocolVersion
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ResponseFuture, Session
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import BatchMessage, _MessageType
from cassandra.query import BatchType, PreparedStatement, Statement

_head = Struct(">BH").pack
_tail = Struct(">HIq").pack
_tail_before_5 = Struct(">HBq").pack
_WITH_TIMESTAMP = 0x20


class _ExpectedWarnings(logging.Filter):
    """Drops the server's warnings that a batch is large or covers many partitions, which ours always are."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        said = record.args[0] if isinstance(record.args, tuple) and record.args else None
        return not str(said).startswith(("Unlogged batch covering", "Batch for ["))


_expected_warnings = _ExpectedWarnings()


class _EncodedBatch(_MessageType):  # type: ignore[misc]  # the driver has no types
    """A batch of encoded rows. (The driver registers message classes without an underscore as responses.)"""

    opcode = BatchMessage.opcode
    name = BatchMessage.name

    def __init__(self, count: int, rows: bytes, consistency_level: int, timestamp: int) -> None:
        self.count, self.rows = count, rows
        self.consistency_level, self.timestamp = consistency_level, timestamp

    def send_body(self, f: BinaryIO, protocol_version: int) -> None:
        """Write the body of the message; called by the driver."""
        tail = _tail if ProtocolVersion.uses_int_query_flags(protocol_version) else _tail_before_5
        f.write(_head(BatchType.UNLOGGED.value, self.count))
        f.write(self.rows)
        f.write(tail(self.consistency_level, _WITH_TIMESTAMP, self.timestamp))


class _BatchFuture(ResponseFuture):  # type: ignore[misc]  # the driver has no types
    """The response to a batch, with a limit of re-preparations: one per statement, and one more.

    The driver alone would go on for as long as a node answers with another statement id than the requested
    one.
    """

    preparations_left = 0

    def _reprepare(self, prepare_message: Any, host: Any, connection: Any, pool: Any) -> None:
        if self.preparations_left == 0:
            self._set_final_exception(DriverException(f"{host} forgets at once: {prepare_message.query}"))
            return
        self.preparations_left -= 1
        super()._reprepare(prepare_message, host, connection, pool)


class BatchSender:
    """Sends batches over one session, at one consistency."""

    def __init__(self, session: Session, consistency: int) -> None:
        self._session, self._consistency = session, consistency
        self._profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
        self._retries = FallthroughRetryPolicy()
        logging.getLogger("cassandra.protocol").addFilter(_expected_warnings)

    def now(self) -> int:
        """The write time, in µs, for statements without one of their own."""
        return int(self._session.cluster.timestamp_generator())

    def send(
        self,
        rows: list[bytes],
        statements: Set[PreparedStatement],
        timestamp: int,
        routing: tuple[str, bytes] | None,
        answered: Callable[[Exception | None], None],
    ) -> None:
        """Send rows (each: id, number of cells, cells); ``answered`` is called by the driver's thread."""
        session, known = self._session, self._session.cluster._prepared_statements
        for statement in statements:
            # The driver re-prepares from this map, which has only what this cluster object prepared.
            if statement.query_id not in known:
                session.cluster.add_prepared(statement.query_id, statement)
        keyspace, routing_key = routing or (None, None)
        message = _EncodedBatch(len(rows), b"".join(rows), self._consistency, timestamp)

        def forget(error: Exception | None) -> None:
            # The driver's objects form cycles and live until the next garbage collection: free the rows now.
            message.rows = b""
            answered(error)

        future = _BatchFuture(
            session,
            message,
            Statement(keyspace=keyspace, routing_key=routing_key, is_idempotent=True),
            self._profile.request_timeout,
            metrics=session._metrics,
            retry_policy=self._retries,
            load_balancer=self._profile.load_balancing_policy,
        )
        future.preparations_left = len(statements) + 1
        future._protocol_handler = session.client_protocol_handler
        future.add_callbacks(lambda _: forget(None), forget)
        future.send_request()
