"""Spark: the data source ``cassandra``, and the applications that run Tidemark's jobs.

``register_cassandra``, ``query_table`` and ``join_by_key`` are the public functions of the data source
(docs/cassandra-data-source.md). They are imported on first use, so that importing this package does not
import PySpark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.spark.source.cassandra import register_cassandra
    from tidemark.spark.source.join_by_key import join_by_key
    from tidemark.spark.source.query_table import query_table

__all__ = ["join_by_key", "query_table", "register_cassandra"]

_MODULES = {
    "join_by_key": "source.join_by_key",
    "query_table": "source.query_table",
    "register_cassandra": "source.cassandra",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
