"""The stored state of a home: internal ports, the mode of Spark, and versions.

It has no secrets. Nothing here starts or stops a process.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from tidemark.embedded.errors import StateDamaged
from tidemark.embedded.files import write_atomically
from tidemark.settings import Settings


class SparkMode(StrEnum):
    """Where Spark runs."""

    CONNECT = "connect"
    """In a Connect server that stays up."""
    LOCAL = "local"
    """In each application."""
    CLUSTER = "cluster"
    """In a standalone cluster, with a driver per application."""


_MODE = "spark_mode"


@dataclass(frozen=True, slots=True)
class State:
    """The content of ``run/state.json``."""

    ports: Mapping[str, int] = field(default_factory=dict)
    spark: SparkMode = SparkMode.CONNECT
    versions: Mapping[str, str] = field(default_factory=dict)
    java_home: str | None = None

    @classmethod
    def read(cls, settings: Settings) -> "State":
        """The state of a home; the default for one that was never used."""
        path = settings.home / "run" / "state.json"
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return cls(stored["ports"], _mode(stored), stored["versions"], stored.get("java_home"))
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError) as error:
            raise StateDamaged(path, f"{type(error).__name__}: {error}") from error

    def write(self, settings: Settings) -> None:
        """Store the state."""
        fields = asdict(self)
        fields[_MODE] = fields.pop("spark")
        text = json.dumps(fields, indent=2, sort_keys=True) + "\n"
        write_atomically(settings.home / "run" / "state.json", text)

    def with_ports(self, ports: Mapping[str, int]) -> "State":
        """The same state with these ports."""
        return replace(self, ports={**self.ports, **ports})


def _mode(stored: Mapping[str, Any]) -> SparkMode:
    """The mode in the stored state.

    Homes of version 0.1.0 have it under ``spark``: there ``local`` was the default, which is not a choice.
    """
    if _MODE in stored:
        return SparkMode(stored[_MODE])
    return SparkMode.CLUSTER if stored["spark"] == "cluster" else SparkMode.CONNECT
