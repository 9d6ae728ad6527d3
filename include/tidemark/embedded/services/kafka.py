"""Kafka: one KRaft process that is both broker and controller."""

import subprocess
import uuid
from pathlib import Path

from tidemark.embedded.errors import ServiceDied
from tidemark.embedded.files import fill, filled, write_atomically
from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.java import Java
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.service import Service, one_program_service
from tidemark.embedded.state import State
from tidemark.kafka.topic_ids import kafka_text
from tidemark.settings import Settings

INTERNAL_PORTS = ("kafka.controller",)
HEAP = "768m"


def kafka_service(settings: Settings, state: State, java: Java, jars: Jars) -> Service:
    """Kafka of this home, ready to be started."""
    folder = settings.home / "kafka"
    config = folder / "server.properties"
    port = settings.kafka_port
    logging = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"

    def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        values = {"port": port, "controller_port": state.ports["kafka.controller"], "data": folder / "data"}
        further = folder / "further.properties"
        own = fill(further.read_text(encoding="utf-8"), **values) if further.exists() else ""
        write_atomically(config, filled("server.properties", **values) + own)
        write_atomically(folder / "log4j2.properties", filled("kafka-log4j2.properties"))
        if not (folder / "data" / "meta.properties").exists():
            _format_storage(java, jars, config, logging, settings.home / "logs" / "kafka.log")

    command = (
        *(str(java.path), "-Xms256m", f"-Xmx{HEAP}", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError"),
        *("-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true", logging),
        *("-cp", jars.classpath("kafka"), "kafka.Kafka", str(config)),
    )
    return one_program_service(
        settings, "kafka", "Kafka", command, port, prepare=prepare, question=ask_kafka, deadline=90.0
    )


def ask_kafka(port: int) -> str | None:
    """Ask for the cluster's metadata; nothing when a broker answers, else what went wrong."""
    from tidemark.kafka.admin import broker_problem  # the client is slow to import

    return broker_problem(LOOPBACK, port)


def _format_storage(java: Java, jars: Jars, config: Path, logging: str, log: Path) -> None:
    """Format the data folder with a new cluster id."""
    command = [str(java.path), "-Xmx256m", "-XX:TieredStopAtLevel=1", logging, "-cp", jars.classpath("kafka")]
    command += ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
    # One word, because an id may begin with a dash and would be taken for another option.
    command += [f"--cluster-id={kafka_text(uuid.uuid4())}", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServiceDied("Kafka's storage tool", log, (done.stdout + done.stderr).splitlines()[-15:])
