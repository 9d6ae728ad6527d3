"""Alias for one release: import ``register_cassandra`` from ``tidemark.spark``."""

import warnings

from tidemark.spark.source.cassandra import CassandraDataSource, register_cassandra

__all__ = ["CassandraDataSource", "register_cassandra"]

warnings.warn(f"{__name__} has moved: import from tidemark.spark", DeprecationWarning, stacklevel=2)
