"""Reads of a table with the columns that a query needs, and no others.

Spark 4.2 does not tell a Python source which columns a query uses: it asks for all of them. Its optimizer
knows, though. So the query is planned first over a stand-in of the table, then run over a read of the columns
that the plan takes from it, with null in place of the others.

Every column of the stand-in has a name that occurs nowhere else, and is renamed in a projection above it. An
optimized plan shows these names wherever it takes a column from the stand-in, and nowhere else. A plan that
does not show the stand-in, or is abridged or redacted, counts as one that needs all columns.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_COLUMN = re.compile(r"__tidemark_(\d+)__#\d+")
_STAND_IN = "tidemark_stand_in"
_OPTIMIZED, _PHYSICAL = "== Optimized Logical Plan ==", "== Physical Plan =="
_LONGEST = "spark.sql.debug.maxToStringFields"
_ABRIDGED = re.compile(r"\.\.\. \d+ more|redacted")


def query_table(
    spark: "SparkSession", query: "Callable[[DataFrame], DataFrame]", **options: str
) -> "DataFrame":
    """The result of a query over a table; only the columns that the query uses are read and decoded.

    ``spark``: a session in which ``register_cassandra`` was called.

    ``query``: a function from the table, as a DataFrame with all its columns, to the result. It is called
    twice, the first time over a stand-in that is only planned, so it must have no side effects.

    ``options``: those of ``spark.read.format("cassandra")``; ``keyspace`` and ``table`` are required.

    Returns the query's result, a lazy DataFrame. A query of which the plan does not show the columns reads
    all of them.
    """
    from pyspark.sql.functions import col, lit
    from pyspark.sql.types import StructType

    source = spark.read.format("cassandra").options(**options)
    table = source.load()
    schema = table.schema
    needed = needed_columns(query(stand_in(spark, schema)), table.columns)
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


def stand_in(spark: "SparkSession", schema: "StructType") -> "DataFrame":
    """A DataFrame with this schema that can be planned, and that no optimization replaces. Never run."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import StructField, StructType

    def tidemark_stand_in(batches: Iterator[Any]) -> Iterator[Any]:
        raise AssertionError("a plan was run")

    names = [f"__tidemark_{number}__" for number in range(len(schema))]
    own = StructType([StructField(name, field.dataType) for name, field in zip(names, schema, strict=True)])
    rows = spark.range(1).mapInArrow(tidemark_stand_in, own)
    return rows.select([col(name).alias(field.name) for name, field in zip(names, schema, strict=True)])


def needed_columns(planned: "DataFrame", columns: list[str]) -> list[str]:
    """The columns that a query uses, in the table's order: of a query over a ``stand_in`` of the table."""
    plan = _explain(planned).partition(_OPTIMIZED)[2].partition(_PHYSICAL)[0]
    above = "\n".join(line for line in plan.splitlines() if _STAND_IN not in line)
    if _STAND_IN not in plan or _ABRIDGED.search(above):
        return columns
    used = {int(number) for number in _COLUMN.findall(above)}
    return [name for number, name in enumerate(columns) if number in used]


def _explain(planned: "DataFrame") -> str:
    """All plans of a DataFrame as text: in SQL, because ``explain`` only prints them."""
    view, spark = f"tidemark_{uuid4().hex}", planned.sparkSession
    longest = spark.conf.get(_LONGEST)
    planned.createTempView(view)
    spark.conf.set(_LONGEST, str(2**20))
    try:
        (explained,) = spark.sql(f"EXPLAIN EXTENDED TABLE {view}").collect()
    finally:
        spark.conf.set(_LONGEST, str(longest))
        spark.catalog.dropTempView(view)
    return str(explained.plan)
