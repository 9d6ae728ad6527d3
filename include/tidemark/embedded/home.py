"""The home folder of a set of services: made, locked, and removed only when it is known to be ours."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidemark.embedded.errors import HomeNotWritable, NotAHome
from tidemark.embedded.files import exclusive
from tidemark.settings import Settings

MARKER = ".tidemark-home"
"""The file by which a folder is known to be ours, and so ours to remove."""
OWNER_ONLY = 0o700
_OURS = {"airflow", "archive", "log", "logs", "packages", "pipelines", "run", "tmp"}
"""What the rest of Tidemark may have put into a home before a service was started in it."""


def make_home(settings: Settings) -> None:
    """Make the home folder and mark it as ours; a folder with other things in it is refused."""
    home = settings.home
    try:
        present = {entry.name for entry in home.iterdir()} if home.exists() else set()
        if MARKER not in present and not present <= _OURS:
            raise NotAHome(home, MARKER)
        home.mkdir(parents=True, exist_ok=True)
        # Databases, keys and passwords of the services are below it: no other user has any business there.
        home.chmod(OWNER_ONLY)
        for folder in (home / "run", home / "logs"):
            folder.mkdir(exist_ok=True)
        (home / MARKER).touch()
    except OSError as error:
        raise HomeNotWritable(home, error.strerror or str(error)) from error


def remove_home(settings: Settings) -> None:
    """Remove the home with all data in it. Whatever runs in it must have been stopped before."""
    if settings.home.exists():
        check_home(settings)
        shutil.rmtree(settings.home.resolve())


def check_home(settings: Settings) -> None:
    """Refuse a folder that is not marked as ours."""
    if not (settings.home / MARKER).is_file():
        raise NotAHome(settings.home, MARKER)


@contextmanager
def at_work(settings: Settings, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep other commands that start or stop something in this home waiting."""
    with exclusive(settings.home / "run" / ".lock", waiting):
        yield
