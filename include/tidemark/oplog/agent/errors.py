"""Errors of an agent: those that keep it from starting."""

from tidemark.errors import TidemarkError, with_fields


class AgentError(TidemarkError):
    """A problem of an OpLog agent. The base class of its errors."""


@with_fields
class NoAgent(AgentError):
    """A pipeline has no agent."""

    pipeline: str

    text = (
        "{pipeline} has no agent: its file has no section `agent`. Nothing was started. Add `agent: {{}}` to "
        "a pipeline with `format: oplog`."
    )


@with_fields
class BadAgentSetting(AgentError):
    """An option or an environment variable of an agent has an invalid value. The value is not repeated."""

    problem: str

    text = "The agent was not started: {problem}"


@with_fields
class AddressTaken(AgentError):
    """An agent cannot listen where it should."""

    pipeline: str
    address: str
    reason: str

    text = (
        "{pipeline}: the agent cannot listen on {address} ({reason}). Nothing was started. Stop the process "
        "that listens there, or give another address with --listen."
    )


@with_fields
class OpenToAll(AgentError):
    """An agent would be reachable for other machines without tokens."""

    pipeline: str
    address: str

    text = (
        "{pipeline}: other machines reach {address}, but the agent has no tokens. Nothing was started. Name "
        "a connection with tokens in `agent.tokens`, or listen on 127.0.0.1."
    )


@with_fields
class TopicUnusable(AgentError):
    """The topic of an agent is not as it was recorded."""

    needs_person = True

    pipeline: str
    topic: str
    problem: str

    text = (
        "{pipeline}: topic {topic} {problem}. Operations are not accepted. Look at the gate of the log: "
        "tidemark log show {pipeline}"
    )


@with_fields
class OperationsGivenUp(AgentError):
    """An agent was stopped with operations that Kafka had not acknowledged."""

    pipeline: str
    count: int

    text = (
        "{pipeline}: the agent was stopped before Kafka had acknowledged all operations; missing: {count}. "
        "Senders by HTTP were told so; those by UDP are lost, unless they are in the topic. Synchronise with "
        "a dump to repair the difference."
    )


@with_fields
class AgentSilent(AgentError):
    """An agent does not answer, or not as an agent does."""

    url: str
    reason: str

    text = "No agent answers at {url} ({reason}). Start one: tidemark oplog serve PIPELINE"
