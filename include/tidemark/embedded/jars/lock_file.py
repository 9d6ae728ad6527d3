"""jars.lock: every jar the services need, with its coordinates, size and SHA-256.

A fetched jar is accepted only with this size and digest. Nothing here fetches.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
Conf = Literal["kafka", "cassandra", "spark"]
CONFS: tuple[Conf, ...] = ("kafka", "cassandra", "spark")


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """One line of jars.lock: ``conf/name sha256 size organisation:module:version[:classifier]``."""

    conf: str
    name: str
    sha256: str
    size: int
    coordinate: str

    @classmethod
    def parse(cls, line: str) -> "Jar":
        """The jar that a line of the file describes."""
        place, sha256, size, coordinate = line.split()
        conf, name = place.split("/")
        return cls(conf, name, sha256, int(size), coordinate)

    def __str__(self) -> str:
        return f"{self.conf}/{self.name}"

    @property
    def line(self) -> str:
        """The line of the file."""
        return f"{self} {self.sha256} {self.size} {self.coordinate}"

    @property
    def organisation(self) -> str:
        """The Maven group."""
        return self.coordinate.split(":")[0]

    @property
    def module(self) -> str:
        """The Maven artifact."""
        return self.coordinate.split(":")[1]

    @property
    def version(self) -> str:
        """The version."""
        return self.coordinate.split(":")[2]

    @property
    def classifier(self) -> str | None:
        """The Maven classifier, of native variants."""
        return parts[3] if len(parts := self.coordinate.split(":")) > 3 else None


@cache
def locked_jars() -> tuple[Jar, ...]:
    """All jars, in the order of the file."""
    lines = (HERE / "jars.lock").read_text(encoding="utf-8").splitlines()
    return tuple(Jar.parse(line) for line in lines if line and not line.startswith("#"))


@cache
def jar_set() -> str:
    """A short digest of this set of jars, which names its folder."""
    digest = hashlib.sha256()
    for name in ("ivy.xml", "jars.lock"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:12]


def version_of(module: str) -> str:
    """The locked version of a module, e.g. ``cassandra-all``."""
    return next(jar.version for jar in locked_jars() if jar.module == module)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
