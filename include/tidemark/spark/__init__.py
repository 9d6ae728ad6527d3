"""Spark: the data source ``cassandra``, and the applications that run Tidemark's jobs.

``register_cassandra``, ``query_table`` and ``join_by_key`` are the public functions of the data source
(docs/cassandra-data-source.md). They are imported on first use, so that importing this package does not
import PySpark.
"""

from typing import TYPE_CHECKING

from tidemark.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from tidemark.spark.source.cassandra import register_cassandra
    from tidemark.spark.source.join_by_key import join_by_key
    from tidemark.spark.source.query_table import query_table

__all__ = ["join_by_key", "query_table", "register_cassandra"]

__getattr__ = lazy_exports(
    __name__,
    {
        "join_by_key": "source.join_by_key",
        "query_table": "source.query_table",
        "register_cassandra": "source.cassandra",
    },
)
