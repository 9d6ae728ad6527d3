"""The home folder of a set of services: created, locked, and removed only if it has our marker."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidemark.embedded.errors import HomeNotWritable, NotAHome
from tidemark.embedded.files import exclusive
from tidemark.settings import Settings

MARKER = ".tidemark-home"
"""The file that marks a folder as a home, which may be removed."""
OWNER_ONLY = 0o700
_OURS = {"airflow", "archive", "log", "logs", "packages", "pipelines", "run", "tmp"}
"""Folders that other parts of Tidemark may create before the first service starts."""


def make_home(settings: Settings) -> None:
    """Create the home folder with its marker; a folder with other content is refused."""
    home = settings.home
    try:
        present = {entry.name for entry in home.iterdir()} if home.exists() else set()
        if MARKER not in present and not present <= _OURS:
            raise NotAHome(home, MARKER)
        home.mkdir(parents=True, exist_ok=True)
        # It holds databases, keys and passwords of the services: no access for other users.
        home.chmod(OWNER_ONLY)
        for folder in (home / "run", home / "logs"):
            folder.mkdir(exist_ok=True)
        (home / MARKER).touch()
    except OSError as error:
        raise HomeNotWritable(home, error.strerror or str(error)) from error


def remove_home(settings: Settings) -> None:
    """Remove the home with all data in it. Its services must have been stopped before."""
    if settings.home.exists():
        check_home(settings)
        shutil.rmtree(settings.home.resolve())


def check_home(settings: Settings) -> None:
    """Refuse a folder without the marker."""
    if not (settings.home / MARKER).is_file():
        raise NotAHome(settings.home, MARKER)


@contextmanager
def at_work(settings: Settings, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of this home: other commands that start or stop services wait."""
    with exclusive(settings.home / "run" / ".lock", waiting):
        yield
