"""Cassandra 5: one node on the loopback address. Several homes can run one each, on different ports."""

import socket

from tidemark.embedded.files import filled, write_atomically
from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.java import Java
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.service import Service, one_program_service
from tidemark.embedded.state import State
from tidemark.settings import Settings

INTERNAL_PORTS = ("cassandra.storage",)
HEAP = "1g"


def cassandra_service(settings: Settings, state: State, java: Java, jars: Jars, heap: str = HEAP) -> Service:
    """Cassandra of this home, ready to be started."""
    folder = settings.home / "cassandra"
    port = settings.cassandra_port

    def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        values = {"port": port, "storage_port": state.ports["cassandra.storage"], "data": folder}
        write_atomically(folder / "cassandra.yaml", filled("cassandra.yaml", **values))
        write_atomically(folder / "logback.xml", filled("cassandra-logback.xml"))
        options = filled(
            "cassandra-jvm.options",
            heap=heap,
            data=folder,
            config=(folder / "cassandra.yaml").as_uri(),
            logback=(folder / "logback.xml").as_uri(),
            jamm=jars.named("cassandra", "jamm"),
            classpath=jars.classpath("cassandra"),
        )
        further = folder / "further.options"  # of two equal options, Java takes the later one
        own = further.read_text(encoding="utf-8") if further.exists() else ""
        write_atomically(folder / "jvm.options", options + own)

    command = (
        str(java.path),
        f"@{folder / 'jvm.options'}",
        "org.apache.cassandra.service.CassandraDaemon",
    )
    return one_program_service(
        settings,
        "cassandra",
        "Cassandra",
        command,
        port,
        prepare=prepare,
        question=ask_cassandra,
        deadline=180.0,
    )


def ask_cassandra(port: int) -> str | None:
    """Run a CQL query; nothing when rows come back, else what went wrong."""
    from tidemark.cassandra.driver import (
        EXEC_PROFILE_DEFAULT,
        Cluster,
        DriverException,
        ExecutionProfile,
        NoHostAvailable,
        RoundRobinPolicy,
    )

    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=5)
    try:
        socket.create_connection((LOOPBACK, port), timeout=2).close()  # the driver would log every refusal
        cluster = Cluster(
            [LOOPBACK],
            port=port,
            protocol_version=5,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=5,
        )
        with cluster, cluster.connect() as session:
            rows = session.execute("SELECT release_version FROM system.local").all()
    except (OSError, DriverException, NoHostAvailable) as error:
        return f"{type(error).__name__}: {error}"
    return None if rows else "no row in system.local"
