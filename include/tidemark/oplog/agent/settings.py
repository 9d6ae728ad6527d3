"""The settings of a running agent: what its pipeline file declares, with what its command line changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemark.connections import KafkaConnection
from tidemark.oplog.agent.errors import OpenToAll
from tidemark.oplog.agent.server.tokens import AgentToken
from tidemark.pipeline.agent import AgentDeclaration, is_loopback


@dataclass(frozen=True)
class AgentSettings:
    """The settings of one agent.

    Attributes:
        pipeline: The pipeline's name.
        topic: The topic of the operations.
        kafka: Its cluster.
        declared: The section ``agent`` of the pipeline's file.
        tokens: The tokens of readers and senders; empty: none are needed.
        is_ingest_only: Whether it has no streams.
    """

    pipeline: str
    topic: str
    kafka: KafkaConnection
    declared: AgentDeclaration
    tokens: Sequence[AgentToken] = ()
    is_ingest_only: bool = False

    def __post_init__(self) -> None:
        host, _ = self.declared.address
        if not self.tokens and not is_loopback(host):
            raise OpenToAll(self.pipeline, self.declared.listen)


PIPELINE, LISTEN, TOKENS, OBJECT_URL, QUEUE, UDP = (
    f"OPLOGD_{name}" for name in ("PIPELINE", "LISTEN", "TOKENS", "OBJECT_URL", "MAX_QUEUED_EVENTS", "UDP")
)
PASSWORD, INGEST_PASSWORD = "OPLOGD_PASSWORD", "OPLOGD_INGEST_PASSWORD"
"""The original's two passwords, as tokens: of a reader, and of a sender."""


def changed(declared: AgentDeclaration, changes: Mapping[str, object]) -> AgentDeclaration:
    """A declaration with some keys changed, checked as a file's would be; None changes nothing."""
    given = {key: value for key, value in changes.items() if value is not None}
    kept = {key: getattr(declared, key) for key in declared.model_fields_set}
    return AgentDeclaration.model_validate({**kept, **given})


def environment_changes(environ: Mapping[str, str]) -> dict[str, object]:
    """The keys of the section ``agent`` that environment variables set."""
    keys = {"listen": LISTEN, "tokens": TOKENS, "object_url": OBJECT_URL, "queue": QUEUE, "udp": UDP}
    found: dict[str, object] = {key: environ[name] for key, name in keys.items() if environ.get(name)}
    queue = str(found.get("queue", ""))
    return found | ({"queue": int(queue)} if queue.isdecimal() else {})
