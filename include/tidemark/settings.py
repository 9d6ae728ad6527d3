"""Paths and ports of this installation: the one module that reads them from the environment.

Nothing here opens a file or a socket; the code that writes to a path creates it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidemark.errors import TidemarkError, with_fields

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: the library is installed in place, so DAGs, applications and pipelines are beside it."""


TRANSFORMS = "TIDEMARK_TRANSFORMS"
"""The variable with the packages that ``function`` transforms may call."""


@with_fields
class BadSetting(TidemarkError):
    """An environment variable has an invalid value."""

    name: str
    value: str
    wanted: str

    text = "{name} is {value!r}, but must be {wanted}. Change or unset it and try again."


@dataclass(frozen=True, slots=True)
class Settings:
    """Paths and ports of one installation.

    Attributes:
        root: The repository or the installed package.
        home: The folder of logs, data and services.
        cache: The folder of downloads.
        pipeline_folders: The folders of pipeline files.
        kafka_port: The port of the embedded Kafka.
        cassandra_port: The port of the embedded Cassandra.
        airflow_port: The port of Airflow's API server.
        spark_port: The port of the embedded Spark Connect server.
        work_folders: The folders of work journals' files.
        oplog_port: The port of the embedded OpLog agent.
        transform_packages: Packages and modules whose functions pipeline files may name; by default none.
    """

    root: Path
    home: Path
    cache: Path
    pipeline_folders: tuple[Path, ...]
    kafka_port: int
    cassandra_port: int
    airflow_port: int
    spark_port: int
    work_folders: tuple[Path, ...]
    transform_packages: tuple[str, ...] = ()
    oplog_port: int = 8042

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """The settings of an environment, with the documented defaults. Raises ``BadSetting``."""
        env = os.environ if environ is None else environ
        root = Path(env.get("TIDEMARK_ROOT") or ROOT)
        cache_root = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(
            root=root,
            home=Path(env.get("TIDEMARK_HOME") or root / ".tidemark").absolute(),
            cache=Path(env.get("TIDEMARK_CACHE") or cache_root / "tidemark").absolute(),
            pipeline_folders=(root / "include" / "pipelines", *_folders(env, "TIDEMARK_PIPELINES")),
            kafka_port=_port(env, "TIDEMARK_KAFKA_PORT", 9092),
            cassandra_port=_port(env, "TIDEMARK_CASSANDRA_PORT", 9042),
            airflow_port=_port(env, "TIDEMARK_AIRFLOW_PORT", 8080),
            spark_port=_port(env, "TIDEMARK_SPARK_PORT", 15002),
            work_folders=(root / "include" / "work", *_folders(env, "TIDEMARK_WORK")),
            transform_packages=tuple(_packages(env)),
            oplog_port=_port(env, "TIDEMARK_OPLOG_PORT", 8042),
        )


def _folders(env: Mapping[str, str], name: str) -> Iterator[Path]:
    return (Path(folder) for folder in env.get(name, "").split(":") if folder)


def _packages(env: Mapping[str, str]) -> Iterator[str]:
    for package in env.get(TRANSFORMS, "").split(":"):
        if not package.strip():
            continue
        if not all(part.isidentifier() for part in package.strip().split(".")):
            raise BadSetting(
                TRANSFORMS, package, "names of packages, such as shop or shop.prices, with : between"
            )
        yield package.strip()


def _port(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name) or str(default)
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise BadSetting(name, text, "a port number from 1 to 65535")
    return int(text)
