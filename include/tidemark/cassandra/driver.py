"""The names of Cassandra's driver that other packages use: they import them from here, and from nowhere else.

A session's statements, types and errors are the driver's own, because a layer over them would only repeat
them. What only this package needs is imported where it is used.
"""

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    InvalidRequest,
    RequestValidationException,
    Unauthorized,
    UnsupportedOperation,
)
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.connection import ConnectionException
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.protocol import BadCredentials, ErrorMessage, ProtocolException
from cassandra.protocol import RequestValidationException as ValidationMessage
from cassandra.query import BatchStatement, BatchType, PreparedStatement, SimpleStatement

__all__ = [
    "EXEC_PROFILE_DEFAULT",
    "AuthenticationFailed",
    "BadCredentials",
    "BatchStatement",
    "BatchType",
    "Cluster",
    "ConnectionException",
    "ConsistencyLevel",
    "DriverException",
    "ErrorMessage",
    "ExecutionProfile",
    "FallthroughRetryPolicy",
    "InvalidRequest",
    "NoHostAvailable",
    "PreparedStatement",
    "ProtocolException",
    "RequestValidationException",
    "RoundRobinPolicy",
    "Session",
    "SimpleStatement",
    "Unauthorized",
    "UnsupportedOperation",
    "ValidationMessage",
    "execute_concurrent_with_args",
]
