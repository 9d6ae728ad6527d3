"""Errors of producers. Each says how much of the input has been acknowledged."""

from tidemark.errors import TidemarkError, with_fields


class ProducerError(TidemarkError):
    """The root of errors about sending operations to an agent."""


@with_fields
class LineRefused(ProducerError):
    """A line of the input is no operation."""

    needs_person = True

    line: int
    reason: str
    before: int

    text = (
        "Line {line} is refused: {reason}. Neither this line nor one after it was sent; {before} operations "
        "before it were."
    )


@with_fields
class OperationsRefused(ProducerError):
    """The agent refuses operations in a way that a retry cannot change."""

    needs_person = True

    url: str
    status: int
    reason: str
    before: int

    text = (
        "{url} answered {status}: {reason} {before} operations before these were acknowledged. Correct the "
        "operations, the address or the token."
    )


@with_fields
class OperationsNotAcknowledged(ProducerError):
    """Operations were not acknowledged in as many attempts as allowed."""

    url: str
    line: int
    attempts: int
    reason: str
    before: int

    text = (
        "{url} did not acknowledge the operations from line {line} on, in {attempts} attempts; the last one: "
        "{reason}. {before} operations before them were acknowledged; of these, some may have arrived. Send "
        "them again from line {line} on: an operation that arrives twice does no harm."
    )


@with_fields
class DatagramRefused(ProducerError):
    """An operation cannot be sent by UDP."""

    address: str
    line: int
    reason: str

    text = (
        "Line {line} could not be sent to {address} by UDP: {reason}. Neither this line nor one after it was "
        "sent. Send it by HTTP, or start the agent."
    )


@with_fields
class BadAgentAddress(ProducerError, ValueError):
    """The address of an agent is not valid."""

    address: str

    text = (
        "`{address}` is not the address of an agent. Nothing was sent. Write one such as "
        "http://127.0.0.1:8042 or udp://127.0.0.1:8042."
    )
