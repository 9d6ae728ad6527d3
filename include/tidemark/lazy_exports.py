"""Names that a package exports and imports only on first use (PEP 562).

Importing the package stays cheap, and does not need the optional dependencies of what it exports.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for the package's ``__init__``.

    Args:
        package: The package's full name, ``__name__``.
        modules: From an exported name to the module below the package that defines it.

    Returns:
        A function that imports a name's module and returns the object. It raises ``AttributeError`` for
        every other name.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return load
