"""The commands of a page: its ``sh`` blocks, cut into single commands in the order of the page."""

import re
import textwrap
from pathlib import Path

_BLOCK = re.compile(r"^(?P<indent> *)```sh\n(?P<body>.*?)^ *```$", re.M | re.S)
_HEREDOC = re.compile(r"<<'(\w+)'")


def page_commands(page: Path) -> list[str]:
    """Every command of the page; a here-document belongs to the command that reads it."""
    blocks = [textwrap.dedent(found["body"]) for found in _BLOCK.finditer(page.read_text())]
    assert blocks, f"{page.name} has no commands"
    return [command for block in blocks for command in _commands(block)]


def _commands(block: str) -> list[str]:
    found: list[str] = []
    end: str | None = None
    for line in block.splitlines():
        if end is not None:
            found[-1] += f"\n{line}"
            end = None if line == end else end
        elif line.strip():
            found.append(line)
            heredoc = _HEREDOC.search(line)
            end = heredoc[1] if heredoc else None
    assert end is None, f"the here-document of {found[-1]!r} has no end"
    return found
