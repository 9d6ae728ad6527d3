"""Packages that tests write into a folder, visible as if pip had installed them."""

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

_BLOCK = re.compile(r"```\w+\n# (?P<path>[\w./-]+)\n(?P<text>.*?)```", re.S)


def files_on(page: str) -> list[tuple[str, str]]:
    """The files that a page shows, each in a block that begins with its path."""
    return [(block["path"], block["text"]) for block in _BLOCK.finditer(page)]


def write_package(folder: Path, pyproject: str, modules: Mapping[str, str]) -> None:
    """A package's modules, and the metadata that its pyproject.toml makes."""
    declared = tomllib.loads(pyproject)["project"]
    for path, text in modules.items():
        module = folder / path
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(text)
    metadata = folder / f"{declared['name'].replace('-', '_')}-{declared['version']}.dist-info"
    metadata.mkdir(parents=True)
    version = f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n"
    (metadata / "METADATA").write_text(version)
    groups = declared["entry-points"].items()
    lines = [
        [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())] for group, points in groups
    ]
    (metadata / "entry_points.txt").write_text("\n".join(line for group in lines for line in group) + "\n")


def declare_package(name: str, group: str, **points: str) -> str:
    """The pyproject.toml of a package with entry points of one group."""
    lines = [f'[project]\nname = "{name}"\nversion = "1.0"', f'[project.entry-points."{group}"]']
    return "\n".join([*lines, *(f'{point} = "{value}"' for point, value in points.items())])


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """The packages in a folder can be imported, and their entry points found, until the end of the block."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                origin = getattr(sys.modules[name], "__file__", None)
                if origin and Path(origin).is_relative_to(folder):
                    del sys.modules[name]
