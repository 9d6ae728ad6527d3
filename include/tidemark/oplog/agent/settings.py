"""The settings of a running agent: what its pipeline file declares, with what its command line changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from tidemark.connections import KafkaConnection
from tidemark.oplog.agent.errors import BadAgentSetting, OpenToAll
from tidemark.oplog.agent.server.tokens import TOKEN_SHAPE, AgentToken, TokenRole, digest_of, is_token
from tidemark.pipeline.agent import OTHER_TOKENS, AgentDeclaration, is_loopback
from tidemark.pipeline.files.refusals import explain


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


PIPELINE = "OPLOGD_PIPELINE"
"""The environment variable with the pipeline, for commands that name none."""
VARIABLES = {
    "listen": "OPLOGD_LISTEN",
    "udp": "OPLOGD_UDP",
    "queue": "OPLOGD_MAX_QUEUED_EVENTS",
    "tokens": "OPLOGD_TOKENS",
    "object_url": "OPLOGD_OBJECT_URL",
}
"""Keys of the section ``agent`` that environment variables set."""
PASSWORDS = {"OPLOGD_PASSWORD": TokenRole.READER, "OPLOGD_INGEST_PASSWORD": TokenRole.SENDER}
"""The original's two passwords, as tokens."""


def changed(
    declared: AgentDeclaration, environ: Mapping[str, str], options: Mapping[str, object]
) -> AgentDeclaration:
    """A declaration with some keys changed: options go before the environment, which goes before the file.

    Raises ``BadAgentSetting`` for what a file could not have either. An option that is None changes nothing.
    """
    given: dict[str, object] = {key: environ[name] for key, name in VARIABLES.items() if environ.get(name)}
    given |= {key: value for key, value in options.items() if value is not None}
    if (queue := str(given.get("queue", ""))).isdecimal():
        given["queue"] = int(queue)
    kept = {key: getattr(declared, key) for key in declared.model_fields_set}
    try:
        has_tokens = any(environ.get(name) for name in PASSWORDS)
        return AgentDeclaration.model_validate({**kept, **given}, context={OTHER_TOKENS: has_tokens})
    except ValidationError as error:
        raise BadAgentSetting(" ".join(one.text for one in explain(error, AgentDeclaration))) from None


def password_tokens(environ: Mapping[str, str]) -> list[AgentToken]:
    """The tokens of ``PASSWORDS``. Raises ``BadAgentSetting``."""
    found = []
    for name, role in PASSWORDS.items():
        if text := environ.get(name):
            if not is_token(text):
                raise BadAgentSetting(f"{name} is not {TOKEN_SHAPE}.")
            found.append(AgentToken(name, digest_of(text), frozenset({role})))
    return found
