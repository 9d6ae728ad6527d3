"""A cluster made of lists: the driver's own futures, policies and tokens over nodes that answer on command.

Nothing runs beside the test. An answer stays on its way until the writer waits for one, and time passes only
while it waits and nothing is on its way: as if the driver's thread ran exactly then.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import count
from queue import Empty
from types import SimpleNamespace
from typing import Any

from cassandra.metadata import KeyspaceMetadata, Metadata
from cassandra.policies import RoundRobinPolicy, SimpleConvictionPolicy, TokenAwarePolicy
from cassandra.pool import Host
from cassandra.protocol import (
    RESULT_KIND_PREPARED,
    RESULT_KIND_VOID,
    ColumnMetadata,
    InvalidRequestException,
    OverloadedErrorMessage,
    PreparedQueryNotFound,
    PrepareMessage,
    ProtocolHandler,
    ResultMessage,
    read_int,
    read_short,
)
from cassandra.query import PreparedStatement

from tidemark.cassandra.bulk.writer import BulkStatement

PROTOCOL = 5
HEADER = 9

OVERLOADED = OverloadedErrorMessage(0x1001, "too much", None)
TOO_LARGE = InvalidRequestException(0x2200, "Batch too large", None)


@dataclass(frozen=True)
class Arrived:
    """A batch as a node reads it."""

    host: Any
    at: float
    body: bytes
    ids: list[bytes]
    rows: list[bytes]
    consistency: int
    timestamp: int

    @property
    def size(self) -> int:
        return sum(1 + 2 + len(each) + 2 + len(row) for each, row in zip(self.ids, self.rows, strict=True))


class FakeCluster:
    """Nodes, their token map, and a session over them."""

    def __init__(self, nodes: int = 1, replication: int = 1) -> None:
        self.arrived: list[Arrived] = []
        self.answer: Callable[[Arrived], Exception | None] = lambda batch: None
        self.forgotten: set[bytes] = set()
        """Statements that no node knows until they are prepared again."""
        self.prepared_again: list[str] = []
        self.most_under_way = 0
        self.now = 1000.0
        self.metadata = Metadata()
        self.hosts = [Host(f"10.0.0.{number}", SimpleConvictionPolicy) for number in range(nodes)]
        for host in self.hosts:
            self.metadata.add_or_return_host(host)
            host.set_up()
        strategy = {"replication_factor": str(replication)}
        self.metadata.keyspaces["journal"] = KeyspaceMetadata("journal", True, "SimpleStrategy", strategy)
        self.place(dict(zip(self.hosts, range(-(2**63), 2**63, 2**64 // nodes), strict=False)))
        self.session = self._make_session()
        self._on_the_way: deque[Callable[[], None]] = deque()
        self._under_way = 0

    def place(self, tokens: Mapping[Host, int]) -> None:
        """Give every node its token."""
        owners = {host: [str(token)] for host, token in tokens.items()}
        self.metadata.rebuild_token_map("Murmur3Partitioner", owners)

    def arrive(self) -> bool:
        """Let the oldest answer arrive; False when there is none."""
        if not self._on_the_way:
            return False
        self._on_the_way.popleft()()
        return True

    def receive(self, host: Host, message: Any, cb: Callable[[Any], None], encoder: Any) -> None:
        if isinstance(message, PrepareMessage):
            self.prepared_again.append(message.query)
            answer = ResultMessage(RESULT_KIND_PREPARED)
            answer.query_id, answer.result_metadata_id = message.query.encode(), None
            self.forgotten.discard(answer.query_id)
            self._on_the_way.append(partial(cb, answer))
            return
        frame = encoder(message, 1, PROTOCOL, compressor=None, allow_beta_protocol_version=False)
        batch = read_batch(host, self.now, frame[HEADER:])
        self.arrived.append(batch)
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        unknown = next((each for each in batch.ids if each in self.forgotten), None)
        if unknown is not None:
            response: Any = PreparedQueryNotFound(0x2500, "unknown", unknown)
        else:
            response = self.answer(batch) or ResultMessage(RESULT_KIND_VOID)
        self._on_the_way.append(partial(self._deliver, cb, response))

    def _deliver(self, cb: Callable[[Any], None], response: Any) -> None:
        self._under_way -= 1
        cb(response)

    def _make_session(self) -> Any:
        policy = TokenAwarePolicy(RoundRobinPolicy())
        known: dict[bytes, Any] = {}
        cluster = SimpleNamespace(
            metadata=self.metadata,
            protocol_version=PROTOCOL,
            timestamp_generator=count(1).__next__,
            _prepared_statements=known,
            add_prepared=known.__setitem__,
        )
        policy.populate(cluster, self.hosts)
        return SimpleNamespace(
            cluster=cluster,
            keyspace=None,
            row_factory=None,
            client_protocol_handler=ProtocolHandler,
            submit=lambda function, *args: function(*args),
            get_execution_profile=lambda name: SimpleNamespace(
                request_timeout=None, load_balancing_policy=policy
            ),
            _metrics=None,
            _pools={host: FakePool(self, host) for host in self.hosts},
        )


class FakePool:
    """The pool of one node, and its only connection."""

    is_shutdown = False
    keyspace = None

    def __init__(self, cluster: FakeCluster, host: Host) -> None:
        self._cluster, self._host = cluster, host

    def borrow_connection(self, timeout: float) -> tuple[Any, int]:
        return self, 1

    def return_connection(self, connection: Any) -> None:
        """Nothing to do: there is but one."""

    def defunct(self, error: Exception) -> None:
        """Nothing to do: the next batch finds it whole."""

    def send_msg(self, message: Any, request_id: int, cb: Any, encoder: Any, **others: Any) -> int:
        self._cluster.receive(self._host, message, cb, encoder)
        return 0


class SteppedQueue:
    """A queue whose reader lets the cluster's answers arrive by waiting."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def empty(self) -> bool:
        return not self._items

    def get(self, timeout: float | None = None) -> Any:
        while not self._items:
            if not self._cluster.arrive():
                assert timeout is not None, "this would wait for ever"
                self._cluster.now += timeout
                raise Empty
        return self._items.popleft()


def read_batch(host: Any, at: float, body: bytes) -> Arrived:
    """Read the body of a BATCH message to its last byte."""
    stream = BytesIO(body)
    assert stream.read(1) == b"\x01", "UNLOGGED"
    ids, rows = [], []
    for _ in range(read_short(stream)):
        assert stream.read(1) == b"\x01", "prepared"
        ids.append(stream.read(read_short(stream)))
        cells, start = read_short(stream), stream.tell()
        for _ in range(cells):
            stream.seek(max(read_int(stream), 0), 1)
        rows.append(body[start : stream.tell()])
    consistency = read_short(stream)
    assert read_int(stream) == 0x20, "with a timestamp and nothing else"
    timestamp = int.from_bytes(stream.read(8), "big")
    assert stream.read() == b""
    return Arrived(host, at, body, ids, rows, consistency, timestamp)


def make_statement(table: str = "rows", keys: list[int] | None = None, markers: int = 1) -> BulkStatement:
    """A statement whose id is its text."""
    columns = [ColumnMetadata("journal", table, f"column{number}", None) for number in range(markers)]
    query = f"INSERT INTO {table}"
    return BulkStatement.of(PreparedStatement(columns, query.encode(), keys, query, None, PROTOCOL, [], None))
