"""Write the map of packages in docs/architecture.md from the imports of the library, so that it stays true.

``make docs`` runs it, and a test compares the page with what it would write.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "include" / "tidemark"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- made by docs/map.py: begin -->\n", "<!-- made by docs/map.py: end -->\n"


def packages() -> dict[str, set[str]]:
    """Every package of the library, and the packages that its modules import."""
    names = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    return {name: {other for other in imported_by(name) if other in names - {name}} for name in sorted(names)}


def imported_by(package: str) -> Iterator[str]:
    """The second part of every ``tidemark.…`` that a package's modules import."""
    for path in (LIBRARY / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            yield from (name.split(".")[1] for name in names if name.startswith("tidemark."))


def reachable(arrows: Mapping[str, set[str]], start: str) -> set[str]:
    """Everything that arrows lead to from a package, itself left out."""
    found: set[str] = set()
    waiting = [*arrows[start]]
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            waiting.extend(arrows[one])
    return found


def reduced(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows without those that a longer path implies, so that the picture stays readable."""
    return {
        name: {one for one in direct if not any(one in reachable(arrows, other) for other in direct - {one})}
        for name, direct in arrows.items()
    }


def picture(arrows: Mapping[str, set[str]]) -> str:
    """The packages as a flow chart, users of a package above it."""
    lines = [f"    {name} --> {one}" for name, direct in reduced(arrows).items() for one in sorted(direct)]
    alone = [f"    {name}" for name, direct in arrows.items() if not direct]
    return "\n".join(["```mermaid", "flowchart TD", *lines, *alone, "```"])


def table(arrows: Mapping[str, set[str]]) -> str:
    """What each package is for, how large it is, and what it imports."""
    rows = ["| package | what it is | modules | imports |", "|---|---|---|---|"]
    for name, direct in sorted(arrows.items(), key=lambda item: (len(reachable(arrows, item[0])), item[0])):
        first = (ast.get_docstring(ast.parse((LIBRARY / name / "__init__.py").read_text())) or "").split(
            "\n"
        )[0]
        count = len([path for path in (LIBRARY / name).rglob("*.py") if path.name != "__init__.py"])
        rows.append(
            f"| `{name}/` | {first.replace('``', '`')} | {count} | {', '.join(sorted(direct)) or '–'} |"
        )
    return "\n".join(rows)


def map_of_packages() -> str:
    """The part of the page that is made."""
    arrows = packages()
    return f"{picture(arrows)}\n\n{table(arrows)}\n"


def page() -> str:
    """The content of docs/architecture.md, with its map made anew."""
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + map_of_packages() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page())
