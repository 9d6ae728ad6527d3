"""Write docs/dags.md from the docstrings of the DAG files: the pages people see in Airflow."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = (
    "replicate",
    "follow",
    "resume",
    "compact_log",
    "compact_offsets",
    "purge_expired",
    "rebuild",
    "sync",
)
WORK = {"work.sweep": "sweep_work", "work.drain_pages": "drain_pages"}


def page() -> str:
    """The content of docs/dags.md."""
    parts = [
        "# DAGs\n\nMade by `make docs` from the files in `dags/`; every pipeline has one of each that begins "
        "with `<pipeline>`, and one of `<pipeline>.follow` if its file has the key `follow`.\n"
    ]
    for name, file in {**{f"<pipeline>.{kind}": kind for kind in KINDS}, **WORK}.items():
        doc = ast.get_docstring(ast.parse((ROOT / "dags" / f"{file}.py").read_text())) or ""
        parts.append(f"## `{name}`\n\n{doc.strip()}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (ROOT / "docs" / "dags.md").write_text(page())
