"""What is asked about a Spark session that may be a classic one or one of Spark Connect.

Not every session has a ``SparkContext``, so nothing here uses one.
"""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS_TO_COUNT = 2**16
"""Rows of a range that gets one partition a core: more than there are cores."""

_cores: "WeakKeyDictionary[SparkSession, int]" = WeakKeyDictionary()


def is_connect(spark: "SparkSession") -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def core_count(spark: "SparkSession") -> int:
    """The number of cores of the session's engine, asked once a session: a range has a partition a core."""
    if spark not in _cores:
        rows = spark.range(_ROWS_TO_COUNT).selectExpr("spark_partition_id() AS number")
        (found,) = rows.selectExpr("max(number) AS last").collect()
        _cores[spark] = int(found.last) + 1
    return _cores[spark]
