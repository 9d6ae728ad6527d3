"""The names of Cassandra's driver that other packages use: they import them from here, and from nowhere else.

A session's statements, types and errors are the driver's own, because a layer over them would only repeat
them. What only this package needs is imported where it is used.
"""

from cassandra import ConsistencyLevel, DriverException, InvalidRequest, Unauthorized
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.marshal import uvint_unpack
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.query import BatchStatement, BatchType, PreparedStatement, SimpleStatement, tuple_factory

__all__ = [
    "EXEC_PROFILE_DEFAULT",
    "BatchStatement",
    "BatchType",
    "Cluster",
    "ConsistencyLevel",
    "DriverException",
    "ExecutionProfile",
    "FallthroughRetryPolicy",
    "InvalidRequest",
    "NoHostAvailable",
    "PreparedStatement",
    "RoundRobinPolicy",
    "Session",
    "SimpleStatement",
    "Unauthorized",
    "execute_concurrent_with_args",
    "tuple_factory",
    "uvint_unpack",
]
