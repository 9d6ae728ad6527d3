"""Creates the role that Tidemark logs in with, and removes Cassandra's default superuser.

Idempotent; runs at every `docker compose up`. It changes no password that is already set.
"""

import os
import sys
import time

from cassandra import AuthenticationFailed
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable, Session

BORN_WITH = "cassandra"
"""Name and password of the superuser that a new Cassandra creates about ten seconds after its start."""

PATIENCE = 120.0
"""Seconds to retry a refused login."""


def log_in(host: str, user: str, password: str) -> Session | None:
    """A session, or None if Cassandra refuses this user and password."""
    cluster = Cluster([host], auth_provider=PlainTextAuthProvider(user, password))
    try:
        return cluster.connect()
    except NoHostAvailable as error:
        cluster.shutdown()
        if any(isinstance(cause, AuthenticationFailed) for cause in error.errors.values()):
            return None
        raise


def create(session: Session, user: str, password: str) -> None:
    """Create the role as a superuser: it creates keyspaces, and it becomes the only role."""
    name, secret = user.replace('"', '""'), password.replace("'", "''")
    session.execute(
        f"""CREATE ROLE "{name}" WITH PASSWORD = '{secret}' AND LOGIN = true AND SUPERUSER = true"""
    )


def ensure(host: str, user: str, password: str, patience: float = PATIENCE) -> None:
    """Return when Tidemark's role can log in and the default superuser is removed."""
    deadline = time.monotonic() + patience
    while (session := log_in(host, user, password)) is None:
        if born := log_in(host, BORN_WITH, BORN_WITH):
            create(born, user, password)
            born.cluster.shutdown()
        elif time.monotonic() > deadline:
            sys.exit(
                f"Cassandra at {host} refuses {user!r} with the password in CASSANDRA_PASSWORD. "
                "Nothing was changed. Put back the password it was set up with, "
                "or change it there first: ALTER ROLE … WITH PASSWORD = …"
            )
        time.sleep(2)
    session.execute(f"DROP ROLE IF EXISTS {BORN_WITH}")
    session.cluster.shutdown()


if __name__ == "__main__":
    if os.environ["CASSANDRA_USER"] == BORN_WITH:
        sys.exit(f"CASSANDRA_USER must not be {BORN_WITH!r}: that role is removed. Nothing was changed.")
    ensure(os.environ["CASSANDRA_HOST"], os.environ["CASSANDRA_USER"], os.environ["CASSANDRA_PASSWORD"])
