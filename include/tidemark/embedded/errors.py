"""What can go wrong with the embedded services: what happened, what did not, and the next step."""

from collections.abc import Sequence
from pathlib import Path

from tidemark.errors import TidemarkError


class EmbeddedError(TidemarkError):
    """A problem of the embedded services that an operator can solve."""


class JavaMissing(EmbeddedError):
    """There is no Java to run the services with."""

    def __init__(self, looked_at: Sequence[str]) -> None:
        super().__init__(
            f"No Java was found (looked at {', '.join(looked_at)}). "
            "Install Java 17, e.g. the package openjdk-17-jre-headless, or set JAVA_HOME to one."
        )
        self.looked_at = tuple(looked_at)


class JavaTooOld(EmbeddedError):
    """Every Java found is older than the services need."""

    def __init__(self, java: Path, version: int, wanted: int) -> None:
        super().__init__(
            f"Java {version} ({java}) is too old: Kafka, Cassandra and Spark need Java {wanted}. "
            f"Install Java {wanted} or set JAVA_HOME to one."
        )
        self.java, self.version, self.wanted = java, version, wanted


class NoSpace(EmbeddedError):
    """The disk has no room for the jars."""

    def __init__(self, folder: Path, needed: int | None = None, free: int | None = None) -> None:
        if needed is None or free is None:
            found = f"The disk of {folder} became full while fetching the jars."
        else:
            found = f"{folder} needs {_mb(needed)} free to fetch the jars, but has {_mb(free)}."
        super().__init__(
            f"{found} Nothing was kept. Free some space, or set TIDEMARK_CACHE to a folder on another disk."
        )
        self.folder, self.needed, self.free = folder, needed, free


class CacheNotWritable(EmbeddedError):
    """The cache folder cannot be written to."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"The jars cannot be kept in {folder}: {why}. "
            "Make it writable, or set TIDEMARK_CACHE to another folder."
        )
        self.folder, self.why = folder, why


class RegistryUnreachable(EmbeddedError):
    """Some jars could not be fetched."""

    def __init__(self, missing: Sequence[str], log: Path) -> None:
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        super().__init__(
            f"{len(missing)} of the jars could not be fetched: {shown}. Check the network, or set "
            "DEFAULT_ARTIFACT_REPOSITORY to a registry that has them, and try again: what was fetched "
            f"is kept. What was tried is in {log}."
        )
        self.missing, self.log = tuple(missing), log


class FetchFailed(EmbeddedError):
    """Ivy failed for a reason of its own."""

    def __init__(self, lines: Sequence[str], log: Path) -> None:
        super().__init__("Fetching the jars failed: " + " / ".join(lines) + f". The whole output: {log}")
        self.lines, self.log = tuple(lines), log


class JarDamaged(EmbeddedError):
    """A jar is not the one that jars.lock promises."""

    def __init__(self, jar: str, expected: str, found: str) -> None:
        super().__init__(
            f"{jar} is damaged (SHA-256 {found[:12]}… instead of {expected[:12]}…) and was removed. "
            "Nothing was started from it. Call again to fetch a good one."
        )
        self.jar, self.expected, self.found = jar, expected, found


class PortTaken(EmbeddedError):
    """Another process listens on the port of a service."""

    def __init__(
        self, service: str, port: int, variable: str, pid: int | None = None, command: str | None = None
    ) -> None:
        holder = f"process {pid} ({command})" if pid else "another process"
        super().__init__(
            f"{service} cannot start: port {port} is taken by {holder}. "
            f"Stop it, or set {variable} to a free port."
        )
        self.service, self.port, self.variable, self.pid, self.command = service, port, variable, pid, command


class OnAnotherPort(EmbeddedError):
    """A service of this home runs already, on a port other than the one asked for."""

    def __init__(self, service: str, running: int, wanted: int) -> None:
        super().__init__(
            f"{service} of this home runs on port {running}, but {wanted} is asked for. "
            "Run `tidemark services down` first, or use another TIDEMARK_HOME."
        )
        self.service, self.running, self.wanted = service, running, wanted


class ServiceDied(EmbeddedError):
    """A process ended while it was starting."""

    def __init__(self, service: str, log: Path, last_lines: Sequence[str]) -> None:
        shown = "\n".join(f"  {line}" for line in last_lines) or "  (it wrote nothing)"
        super().__init__(f"{service} ended while starting. Its last lines (all of them: {log}):\n{shown}")
        self.service, self.log, self.last_lines = service, log, tuple(last_lines)


class ServiceSilent(EmbeddedError):
    """A process runs but did not answer in time."""

    def __init__(self, service: str, seconds: float, log: Path, last_answer: str) -> None:
        super().__init__(
            f"{service} runs but has not answered within {seconds:.0f} s ({last_answer}). "
            f"Look at {log}; `tidemark services up` waits again, `down` stops it."
        )
        self.service, self.seconds, self.log, self.last_answer = service, seconds, log, last_answer


class StillRunning(EmbeddedError):
    """Processes that do not end even when killed."""

    def __init__(self, pids: Sequence[int]) -> None:
        super().__init__(
            f"These processes did not end even when killed: {', '.join(map(str, pids))}. "
            "The machine is stuck on them; look at `ps -o pid,stat,wchan,args`."
        )
        self.pids = tuple(pids)


class NotAHome(EmbeddedError):
    """A folder that was not made by the embedded services, and so is not removed."""

    def __init__(self, folder: Path, marker: str) -> None:
        super().__init__(
            f"{folder} is not a folder of the embedded services (it has other things in it and no {marker}). "
            "Nothing was changed. Set TIDEMARK_HOME to a folder that is new or empty."
        )
        self.folder = folder


class HomeNotWritable(EmbeddedError):
    """The home folder cannot be written to."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"The services cannot keep their data in {folder}: {why}. "
            "Make it writable, or set TIDEMARK_HOME to another folder."
        )
        self.folder, self.why = folder, why


class UnknownService(EmbeddedError):
    """A name that is none of the services."""

    def __init__(self, name: str, known: Sequence[str], guess: str | None) -> None:
        meant = f" Did you mean {guess}?" if guess else ""
        super().__init__(f"There is no service {name!r}.{meant} They are: {', '.join(known)}.")
        self.name, self.known, self.guess = name, tuple(known), guess


class NoLog(EmbeddedError):
    """A service that has never been started here has no log."""

    def __init__(self, service: str, log: Path) -> None:
        super().__init__(f"{service} has no log yet ({log}). Start it with `tidemark services up`.")
        self.service, self.log = service, log


class StateDamaged(EmbeddedError):
    """The state file of a home cannot be read."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} cannot be read ({why}). Remove it and run `tidemark services up`: "
            "it only holds port numbers, which are then chosen anew."
        )
        self.path, self.why = path, why


class ArchiveFailed(EmbeddedError):
    """The archive of Spark's classes could not be made."""

    def __init__(self, log: Path) -> None:
        super().__init__(
            f"The archive of Spark's classes could not be made; see {log}. "
            "Spark works without it, only slower."
        )
        self.log = log


def _mb(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
