"""Spark: the data sources ``cassandra`` and ``collection``, and the applications that run Tidemark's jobs.

``register_cassandra``, ``query_table`` and ``join_by_key`` are the public functions of the data source
``cassandra`` (docs/cassandra-data-source.md), ``register_collections`` is that of ``collection``
(docs/collections.md). They are imported on first use, so that importing this package does not import PySpark.
"""

from typing import TYPE_CHECKING

from tidemark.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from tidemark.spark.source.cassandra import register_cassandra
    from tidemark.spark.source.collection import register_collections
    from tidemark.spark.source.join_by_key import join_by_key
    from tidemark.spark.source.query_table import query_table

__all__ = ["join_by_key", "query_table", "register_cassandra", "register_collections"]

__getattr__ = lazy_exports(
    __name__,
    {
        "join_by_key": "source.join_by_key",
        "query_table": "source.query_table",
        "register_cassandra": "source.cassandra",
        "register_collections": "source.collection",
    },
)
