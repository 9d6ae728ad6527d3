"""Which code a process has loaded: digests of the library and of modules that pipelines name.

Python workers of an engine that stays up outlive a change of the code that they have loaded. Before a task
does anything it compares what it has loaded with what its driver has; other code is refused. A digest is
computed once a process. An application asks for all of them before it works, so they are those of the loaded
code, however long it runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemark.errors import with_fields
from tidemark.module_digests import package_digest
from tidemark.spark.errors import EngineError
from tidemark.spark.library_archive import library_digest

LIBRARY = "tidemark"


@with_fields
class OtherCode(EngineError):
    """A Python process of the engine has loaded other code than the driver."""

    module: str
    wanted: str
    found: str

    text = (
        "A Python process of the Spark engine runs another version of `{module}` (digest {found} instead of "
        "{wanted}). It has written nothing. Restart the engine (embedded services: tidemark services down "
        "--only spark, then up), then try again; on a cluster, install the same version everywhere."
    )


@dataclass(frozen=True)
class CodeDigests:
    """Digests of code by the name of its module; sent to tasks."""

    digests: Mapping[str, str]

    @classmethod
    def loaded(cls, modules: Iterable[str] = ()) -> "CodeDigests":
        """The digests of what this process has loaded: the library, and the packages of ``modules``."""
        return cls({name: loaded_digest(name) for name in (LIBRARY, *sorted(set(modules)))})

    def require(self) -> None:
        """Raise ``OtherCode`` where this process has loaded something else."""
        for name, wanted in self.digests.items():
            if (found := loaded_digest(name)) != wanted:
                raise OtherCode(name, wanted, found)


def loaded_digest(module: str) -> str:
    """The digest of a module's package as it was when this process first needed it; imports it."""
    if module == LIBRARY:
        return library_digest()
    try:
        return package_digest(module)
    except ImportError:
        return "not installed"
