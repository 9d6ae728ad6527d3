"""What can be wrong between this library and Cassandra; most errors are beside the code that raises them."""

from tidemark.errors import TidemarkError, with_fields


class CassandraError(TidemarkError):
    """Cassandra did not answer, or a table, a row or a value does not fit what is asked of it."""


@with_fields
class FactRefused(CassandraError):
    """A fact that a column does not have, or no name for it."""

    table: str
    column: str
    fact: str
    problem: str

    text = "{table}: there is no {fact} of column `{column}`: {problem} Nothing was read."
