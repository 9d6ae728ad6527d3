"""What can go wrong with the embedded services: what happened, what did not, and the next step."""

from collections.abc import Sequence
from pathlib import Path

from tidemark.errors import TidemarkError, with_fields


class EmbeddedError(TidemarkError):
    """A problem of the embedded services that an operator can solve."""


@with_fields
class JavaMissing(EmbeddedError):
    """There is no Java to run the services with."""

    looked_at: Sequence[str]

    def __str__(self) -> str:
        return (
            f"No Java was found (looked at {', '.join(self.looked_at)}). Install Java 17, e.g. the package "
            "openjdk-17-jre-headless, or set JAVA_HOME to one."
        )


@with_fields
class JavaTooOld(EmbeddedError):
    """Every Java found is older than the services need."""

    java: Path
    version: int
    wanted: int

    text = (
        "Java {version} ({java}) is too old: Kafka, Cassandra and Spark need Java {wanted}. Install Java "
        "{wanted} or set JAVA_HOME to one."
    )


@with_fields
class NoSpace(EmbeddedError):
    """The disk has no room for the jars."""

    folder: Path
    needed: int | None = None
    free: int | None = None

    def __str__(self) -> str:
        if self.needed is None or self.free is None:
            found = f"The disk of {self.folder} became full while fetching the jars."
        else:
            found = (
                f"{self.folder} needs {_mb(self.needed)} free to fetch the jars, but has {_mb(self.free)}."
            )
        return (
            f"{found} Nothing was kept. Free some space, or set TIDEMARK_CACHE to a folder on another disk."
        )


@with_fields
class CacheNotWritable(EmbeddedError):
    """The cache folder cannot be written to."""

    folder: Path
    why: str

    text = (
        "The jars cannot be kept in {folder}: {why}. Make it writable, or set TIDEMARK_CACHE to another "
        "folder."
    )


@with_fields
class RegistryUnreachable(EmbeddedError):
    """Some jars could not be fetched."""

    missing: Sequence[str]
    log: Path

    def __str__(self) -> str:
        shown = ", ".join(self.missing[:3]) + (
            f" and {len(self.missing) - 3} more" if len(self.missing) > 3 else ""
        )
        return (
            f"{len(self.missing)} of the jars could not be fetched: {shown}. Check the network, or set "
            "DEFAULT_ARTIFACT_REPOSITORY to a registry that has them, and try again: what was fetched is "
            f"kept. What was tried is in {self.log}."
        )


@with_fields
class FetchFailed(EmbeddedError):
    """Ivy failed for a reason of its own."""

    lines: Sequence[str]
    log: Path

    def __str__(self) -> str:
        return "Fetching the jars failed: " + " / ".join(self.lines) + f". The whole output: {self.log}"


@with_fields
class JarDamaged(EmbeddedError):
    """A jar is not the one that jars.lock promises."""

    jar: str
    expected: str
    found: str

    text = (
        "{jar} is damaged (SHA-256 {found:.12}… instead of {expected:.12}…) and was removed. Nothing was "
        "started from it. Call again to fetch a good one."
    )


@with_fields
class PortTaken(EmbeddedError):
    """Another process listens on the port of a service."""

    service: str
    port: int
    variable: str
    pid: int | None = None
    command: str | None = None

    def __str__(self) -> str:
        holder = f"process {self.pid} ({self.command})" if self.pid else "another process"
        return (
            f"{self.service} cannot start: port {self.port} is taken by {holder}. Stop it, or set "
            f"{self.variable} to a free port."
        )


@with_fields
class OnAnotherPort(EmbeddedError):
    """A service of this home runs already, on a port other than the one asked for."""

    service: str
    running: int
    wanted: int

    text = (
        "{service} of this home runs on port {running}, but {wanted} is asked for. Run `tidemark services "
        "down` first, or use another TIDEMARK_HOME."
    )


@with_fields
class ServiceDied(EmbeddedError):
    """A process ended while it was starting."""

    service: str
    log: Path
    last_lines: Sequence[str]

    def __str__(self) -> str:
        shown = "\n".join(f"  {line}" for line in self.last_lines) or "  (it wrote nothing)"
        return f"{self.service} ended while starting. Its last lines (all of them: {self.log}):\n{shown}"


@with_fields
class ServiceSilent(EmbeddedError):
    """A process runs but did not answer in time."""

    service: str
    seconds: float
    log: Path
    last_answer: str

    text = (
        "{service} runs but has not answered within {seconds:.0f} s ({last_answer}). Look at {log}; "
        "`tidemark services up` waits again, `down` stops it."
    )


@with_fields
class FirstUseFailed(EmbeddedError):
    """A service answers, but cannot do what it is there for."""

    service: str
    work: str
    problem: str
    log: Path

    text = (
        "{service} runs, but its first {work} failed: {problem}. Look at {log}; when the cause is mended, "
        "stop it with `tidemark services down` and start it again."
    )


@with_fields
class StillRunning(EmbeddedError):
    """Processes that do not end even when killed."""

    pids: Sequence[int]

    def __str__(self) -> str:
        return (
            f"These processes did not end even when killed: {', '.join(map(str, self.pids))}. The machine "
            "is stuck on them; look at `ps -o pid,stat,wchan,args`."
        )


@with_fields
class NotAHome(EmbeddedError):
    """A folder that was not made by the embedded services, and so is not removed."""

    folder: Path
    marker: str

    text = (
        "{folder} is not a folder of the embedded services (it has other things in it and no {marker}). "
        "Nothing was changed. Set TIDEMARK_HOME to a folder that is new or empty."
    )


@with_fields
class HomeNotWritable(EmbeddedError):
    """The home folder cannot be written to."""

    folder: Path
    why: str

    text = (
        "The services cannot keep their data in {folder}: {why}. Make it writable, or set TIDEMARK_HOME to "
        "another folder."
    )


@with_fields
class UnknownService(EmbeddedError):
    """A name that is none of the services."""

    name: str
    known: Sequence[str]
    guess: str | None

    def __str__(self) -> str:
        meant = f" Did you mean {self.guess}?" if self.guess else ""
        return f"There is no service {self.name!r}.{meant} They are: {', '.join(self.known)}."


class NoAgentDeclared(EmbeddedError):
    """The service of OpLog agents was asked for, but no pipeline has an agent."""

    def __str__(self) -> str:
        return (
            "No pipeline file declares an agent, so there is none to start. Add `agent: {}` to a pipeline "
            "with `format: oplog`."
        )


@with_fields
class NoLog(EmbeddedError):
    """A service that has never been started here has no log."""

    service: str
    log: Path

    text = "{service} has no log yet ({log}). Start it with `tidemark services up`."


@with_fields
class StateDamaged(EmbeddedError):
    """The state file of a home cannot be read."""

    path: Path
    why: str

    text = (
        "{path} cannot be read ({why}). Remove it and run `tidemark services up`: it only holds port "
        "numbers, which are then chosen anew."
    )


@with_fields
class ArchiveFailed(EmbeddedError):
    """The archive of Spark's classes could not be made."""

    log: Path

    text = "The archive of Spark's classes could not be made; see {log}. Spark works without it, only slower."


@with_fields
class AirflowRefused(EmbeddedError):
    """Airflow did not do what it was asked."""

    what: str
    status: int
    detail: str

    text = "Airflow refused to {what} ({status}: {detail}). Look at: tidemark services status"


def _mb(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
