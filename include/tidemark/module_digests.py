"""Digests of Python modules by their source: of a whole package, or of what a module imports of its package.

They are those of the code that this process has loaded: sources are read once a process, when a module is
first asked for, which imports it. A process therefore asks before it works. What a module imports is read
from the sources, also imports inside of functions. Two things are not found: a module that is imported by a
computed name, and a file that is no module.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tidemark.errors import TidemarkError, with_fields

PACKAGE_FILE = "__init__.py"


@with_fields
class SourceMissing(TidemarkError):
    """The source of a module cannot be read, so that a change of it would not be noticed."""

    needs_person = True

    module: str

    text = (
        "the source of `{module}` is not in a file beside its package, so a change of it could not be "
        "noticed. Nothing was delivered with it. Install the package as plain files, not as an archive."
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """One module: its name, whether it is a package, and its text."""

    name: str
    is_package: bool
    text: bytes


def read_sources(root: Path) -> dict[str, bytes]:
    """The Python files below a folder, by their path in it, sorted."""
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*.py"))}


def digest_of(sources: Mapping[str, bytes]) -> str:
    """The digest of some sources and their names, in their order."""
    digest = sha256()
    for name, text in sources.items():
        digest.update(name.encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def package_sources(package: ModuleType) -> dict[str, bytes]:
    """The sources of a package by path, or the only one of a module that is not in a package."""
    found: dict[str, bytes] = {}
    for root in getattr(package, "__path__", ()):
        found = read_sources(Path(root)) | found  # as an import does: the first root that has a file counts
    if not hasattr(package, "__path__") and package.__file__:
        file = Path(package.__file__)
        found = {file.name: file.read_bytes()}
    return found


@cache
def loaded_sources(module: str) -> Mapping[str, bytes]:
    """The sources of a module's package as they were when this process first asked for the module.

    Imports the module; raises what that raises.
    """
    import_module(module)
    return package_sources(sys.modules[module.partition(".")[0]])


def package_digest(module: str) -> str:
    """The digest of a module's whole package, as loaded."""
    return digest_of(loaded_sources(module))


def imported_digests(module: str) -> dict[str, str]:
    """The digest of a module and of every module that it imports of its own package, by name, as loaded.

    Also what those import, and the packages that they are in. Raises ``SourceMissing``.
    """
    texts, package = loaded_sources(module), module.partition(".")[0]
    is_package = hasattr(sys.modules[package], "__path__")
    sources = {one.name: one for one in _modules(package, is_package, texts)}
    if module not in sources:
        raise SourceMissing(module)
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        for name in _with_packages(waiting.pop()):
            if name in sources and name not in found:
                found[name] = digest_of({name: sources[name].text})
                waiting.extend(_imports(sources[name], sources))
    return dict(sorted(found.items()))


def _modules(package: str, is_package: bool, sources: Mapping[str, bytes]) -> Iterator[_Source]:
    for path, text in sources.items():
        *folders, file = Path(path).parts
        ends = [] if file == PACKAGE_FILE else [file.removesuffix(".py")]
        parts = [package, *folders, *ends] if is_package else ends
        yield _Source(".".join(parts), file == PACKAGE_FILE, text)


def _with_packages(name: str) -> Iterator[str]:
    """A module and the packages that it is in: importing it runs them too."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _imports(source: _Source, sources: Mapping[str, _Source]) -> Iterator[str]:
    """Every name that a module's imports may mean: modules, and attributes of modules."""
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError):
        return  # it cannot be imported either
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(source, node)
            for alias in node.names:
                if alias.name == "*":  # which submodules that brings depends on values: take all
                    yield from (name for name in sources if name.rpartition(".")[0] == origin)
                yield f"{origin}.{alias.name}"


def _origin(source: _Source, node: ast.ImportFrom) -> str:
    """The absolute name of the module that an import is from."""
    if not node.level:
        return node.module or ""
    parts = source.name.split(".")
    upwards = node.level - source.is_package
    package = parts[: len(parts) - upwards]
    return ".".join([*package, *([node.module] if node.module else [])])
