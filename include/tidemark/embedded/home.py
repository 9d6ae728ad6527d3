"""The home folder of a set of services: made, locked, and removed only when it is known to be ours."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidemark.embedded.errors import HomeNotWritable, NotAHome
from tidemark.embedded.files import exclusive
from tidemark.settings import Settings

MARKER = ".tidemark-home"
"""The file by which a folder is known to be ours, and so ours to remove."""
_NOT_OURS = ("dags", "include", ".git", "pyproject.toml", ".ssh", ".bashrc", ".profile", "etc", "usr")


def make_home(settings: Settings) -> None:
    """Make the home folder and mark it as ours. A folder that is plainly something else is refused."""
    home = settings.home
    try:
        if not (home / MARKER).exists() and any((home / name).exists() for name in _NOT_OURS):
            raise NotAHome(home, MARKER)
        for folder in (home / "run", home / "logs"):
            folder.mkdir(parents=True, exist_ok=True)
        (home / MARKER).touch()
    except OSError as error:
        raise HomeNotWritable(home, error.strerror or str(error)) from error


def remove_home(settings: Settings) -> None:
    """Remove the home with all data in it. Whatever runs in it must have been stopped before."""
    if settings.home.exists():
        if not (settings.home / MARKER).is_file():
            raise NotAHome(settings.home, MARKER)
        shutil.rmtree(settings.home)


@contextmanager
def at_work(settings: Settings, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep other commands that start or stop something in this home waiting."""
    with exclusive(settings.home / "run" / ".lock", waiting):
        yield
