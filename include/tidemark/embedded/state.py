"""The stored state of a home: internal ports, the mode of Spark, and versions.

It has no secrets. Nothing here starts or stops a process.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from tidemark.embedded.errors import StateDamaged
from tidemark.embedded.files import write_atomically
from tidemark.settings import Settings

SparkMode = Literal["local", "cluster"]


@dataclass(frozen=True, slots=True)
class State:
    """The content of ``run/state.json``."""

    ports: Mapping[str, int] = field(default_factory=dict)
    spark: SparkMode = "local"
    versions: Mapping[str, str] = field(default_factory=dict)
    java_home: str | None = None

    @classmethod
    def read(cls, settings: Settings) -> "State":
        """The state of a home; the default for one that was never used."""
        path = settings.home / "run" / "state.json"
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return cls(stored["ports"], stored["spark"], stored["versions"], stored.get("java_home"))
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError) as error:
            raise StateDamaged(path, f"{type(error).__name__}: {error}") from error

    def write(self, settings: Settings) -> None:
        """Store the state."""
        text = json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"
        write_atomically(settings.home / "run" / "state.json", text)

    def with_ports(self, ports: Mapping[str, int]) -> "State":
        """The same state with these ports."""
        return replace(self, ports={**self.ports, **ports})
