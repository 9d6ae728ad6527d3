"""Atomic writes, lock files, and the templates of configuration files."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file atomically: a reader sees the old or the new content, even if this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8"
        ) as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold this lock file, at most until the process ends; ``waiting`` is called if another holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def filled(template: str, **values: object) -> str:
    """A file of ``templates/`` with its ``@names@`` replaced."""
    return fill((TEMPLATES / template).read_text(encoding="utf-8"), **values)


def fill(text: str, **values: object) -> str:
    """A text with its ``@names@`` replaced."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
