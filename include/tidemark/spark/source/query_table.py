"""Reads of a table with the columns that a query needs, and no others.

Spark 4.2 does not tell a Python source which columns a query uses: it asks for all of them. Its optimizer
knows, though. So the query is planned first over an empty DataFrame of the table's schema, then run over a
read of the columns that the plan uses, with null in place of the others. Nothing here looks into expressions.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STAND_IN = "LogicalRDD"


def query_table(
    spark: "SparkSession", query: "Callable[[DataFrame], DataFrame]", **options: str
) -> "DataFrame":
    """The result of a query over a table; only the columns that the query uses are read and decoded.

    ``spark``: a session in which ``register_cassandra`` was called (not Spark Connect).

    ``query``: a function from the table, as a DataFrame with all its columns, to the result. It is called
    twice, the first time over an empty DataFrame that is only planned, so it must have no side effects.

    ``options``: those of ``spark.read.format("cassandra")``; ``keyspace`` and ``table`` are required.

    Returns the query's result, a lazy DataFrame. A query of which the plan does not show the columns reads
    all of them.
    """
    from pyspark.sql.functions import col, lit
    from pyspark.sql.types import StructType

    source = spark.read.format("cassandra").options(**options)
    table = source.load()
    schema = table.schema
    planned = query(spark.createDataFrame(spark.sparkContext.emptyRDD(), schema))
    needed = needed_columns(planned, table.columns)
    if len(needed) == len(schema):
        return query(table)
    # A read has at least one column: the first of the key counts rows as well.
    read = source.schema(StructType([schema[name] for name in needed or table.columns[:1]])).load()
    columns = [
        col(f"`{field.name.replace('`', '``')}`")
        if field.name in read.columns
        else lit(None).cast(field.dataType).alias(field.name)
        for field in schema
    ]
    return query(read.select(columns))


def needed_columns(planned: "DataFrame", columns: list[str]) -> list[str]:
    """The columns that a query uses, in the table's order: of a query over an empty stand-in of the table."""
    used: set[str] = set()
    found = False
    for above, scan in _leaves(planned._jdf.queryExecution().optimizedPlan(), []):
        if set(_names(scan.output())) == set(columns):
            found = True
            used |= _used_above(above, columns)
    # Without the stand-in in the plan, its rows are not needed at all, which an empty read would not tell.
    return [name for name in columns if name in used] if found else columns


def _used_above(above: list[Any], columns: list[str]) -> set[str]:
    """What the operators above a scan take from it: up to the first that makes columns of its own."""
    used: set[str] = set()
    for node in reversed(above):
        used |= set(_names(node.references().toSeq()))
        if node.nodeName() in ("Project", "Aggregate"):
            return used
        if node.nodeName() != "Filter":
            break
    return set(columns)


def _leaves(plan: Any, above: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    """Each stand-in of a plan, with the operators above it, outermost first."""
    if plan.getClass().getSimpleName() == _STAND_IN:
        yield above, plan
    children = plan.children()
    for place in range(children.size()):
        yield from _leaves(children.apply(place), [*above, plan])


def _names(attributes: Any) -> list[str]:
    return [attributes.apply(place).name() for place in range(attributes.size())]
