"""Sessions with Cassandra: one per process and connection, shared by all threads.

A session does not survive a fork, so the cache is keyed by process id. Statements run at LOCAL_QUORUM unless
they set another level. Nothing here retries a statement that is not idempotent.
"""

import os
import ssl
import threading
from datetime import UTC, datetime

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import DCAwareRoundRobinPolicy, RoundRobinPolicy, TokenAwarePolicy

from tidemark.cassandra.errors import CassandraError
from tidemark.connections import CassandraConnection
from tidemark.errors import with_fields

_sessions: dict[tuple[int, str], Session] = {}
_opening = threading.Lock()


def _renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that held it does not exist."""
    global _opening
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


@with_fields
class CassandraUnreachable(CassandraError):
    """No node answered."""

    hosts: str
    reason: str

    text = (
        "Cassandra does not answer at {hosts} ({reason}). Start it (embedded: tidemark services up), or "
        "correct the connection."
    )


def connect(connection: CassandraConnection) -> Session:
    """The process's session for this connection, opened on first use. Raises ``CassandraUnreachable``."""
    # With the secrets in clear, so that connections which differ only in the password have two sessions.
    key = (os.getpid(), repr(sorted(connection.revealed().items(), key=lambda item: item[0])))
    with _opening:
        if key not in _sessions:
            _sessions[key] = _open(connection)
        return _sessions[key]


def disconnect_all() -> None:
    """Close this process's sessions: a running driver thread would keep the interpreter from exiting."""
    for key in [key for key in _sessions if key[0] == os.getpid()]:
        _sessions.pop(key).cluster.shutdown()


def server_time(session: Session) -> int:
    """The time of Cassandra's clock, in microseconds since 1970."""
    now: datetime = session.execute("SELECT toTimestamp(now()) AS now FROM system.local").one().now
    return int(now.replace(tzinfo=UTC).timestamp() * 1_000_000)


def _open(connection: CassandraConnection) -> Session:
    policy = DCAwareRoundRobinPolicy(connection.local_dc) if connection.local_dc else RoundRobinPolicy()
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(policy),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.SERIAL,
        request_timeout=20,
    )
    cluster = Cluster(
        connection.hosts,
        port=connection.port,
        auth_provider=_login(connection),
        ssl_context=_tls(connection),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        connect_timeout=10,
        control_connection_timeout=10,
        # Between processes of one machine, compressing takes longer than copying.
        compression=not all(map(_is_this_machine, connection.hosts)),
    )
    try:
        return cluster.connect()
    except NoHostAvailable as error:
        cluster.shutdown()
        reasons = {f"{type(e).__name__}: {e}" for e in error.errors.values()} or {str(error)}
        hosts = ", ".join(f"{host}:{connection.port}" for host in connection.hosts)
        raise CassandraUnreachable(hosts, "; ".join(sorted(reasons))) from None


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _login(connection: CassandraConnection) -> PlainTextAuthProvider | None:
    if connection.user is None or connection.password is None:
        return None
    return PlainTextAuthProvider(connection.user, connection.password.get_secret_value())


def _tls(connection: CassandraConnection) -> ssl.SSLContext | None:
    if not connection.uses_tls:
        return None
    context = ssl.create_default_context(cafile=connection.ca_file)
    context.check_hostname = connection.check_host
    if connection.certificate_file:
        context.load_cert_chain(connection.certificate_file, connection.key_file)
    return context
