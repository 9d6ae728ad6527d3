"""Alias for one release: import ``query_table`` from ``tidemark.spark``."""

import warnings

from tidemark.spark.source.query_table import query_table

__all__ = ["query_table"]

warnings.warn(f"{__name__} has moved: import from tidemark.spark", DeprecationWarning, stacklevel=2)
