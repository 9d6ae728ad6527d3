"""The root of what goes wrong between this library and Cassandra."""

from tidemark.errors import TidemarkError


class CassandraError(TidemarkError):
    """Cassandra did not answer, or a table, a row or a value does not fit what is asked of it."""
