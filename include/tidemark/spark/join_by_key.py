"""Alias for one release: import ``join_by_key`` from ``tidemark.spark``.

Importing this module binds it to the attribute ``join_by_key`` of the package, where callers expect the
function of the same name. So the module can be called as the function.
"""

import sys
import warnings
from types import ModuleType
from typing import Any

from tidemark.spark.source.errors import JoinRefused
from tidemark.spark.source.join_by_key import Join, join_by_key

__all__ = ["Join", "JoinRefused", "join_by_key"]


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return join_by_key(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
warnings.warn(f"{__name__} has moved: import from tidemark.spark", DeprecationWarning, stacklevel=2)
