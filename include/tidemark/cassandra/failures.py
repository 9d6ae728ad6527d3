"""The errors that Cassandra's driver raises instead of a response, as tuples for ``except``."""

from cassandra import (
    AuthenticationFailed,
    DriverException,
    RequestValidationException,
    UnsupportedOperation,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import BadCredentials, ErrorMessage, ProtocolException
from cassandra.protocol import RequestValidationException as ValidationMessage

FAILURES = (DriverException, NoHostAvailable, ConnectionException, ErrorMessage)
"""All of them. The driver raises ``ErrorMessage`` for errors it has no class for, such as Cassandra's "CAS
write unknown" (0x1700)."""
REFUSALS = (
    RequestValidationException,
    AuthenticationFailed,
    UnsupportedOperation,
    ValidationMessage,
    ProtocolException,
    BadCredentials,
)
"""The failures after which a transaction has certainly not started. "Unavailable" and "overloaded" are not
among them: they may be the response to the driver's second sending of the same transaction."""
