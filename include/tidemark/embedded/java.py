"""Which Java runs the services.

Java 17 is what Kafka 4, Cassandra 5.0 and Spark 4 have in common. A newer one is taken only when there is no
17, with a warning. Nothing here starts a service.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidemark.embedded.errors import JavaMissing, JavaTooOld

WANTED = 17
JVM_FOLDERS = Path("/usr/lib/jvm")


@dataclass(frozen=True, slots=True)
class Java:
    """One ``java`` executable and its version."""

    path: Path
    version: int
    full_version: str

    @property
    def home(self) -> Path:
        """The value of JAVA_HOME for programs that need it."""
        return self.path.resolve().parent.parent

    @property
    def warning(self) -> str | None:
        """Why this Java may not work; None where it does."""
        if self.version == WANTED:
            return None
        return (
            f"Java {self.version} ({self.path}) is newer than the {WANTED} that Cassandra 5.0 supports "
            f"and may not start it. If so, set JAVA_HOME to a Java {WANTED}."
        )


def find_java(environ: Mapping[str, str], jvm_folders: Path = JVM_FOLDERS) -> Java:
    """The first Java 17 among JAVA_HOME, PATH and the system's folder; without any, the first newer one."""
    found = [java for path in _candidates(environ, jvm_folders) if (java := _ask(path))]
    if not found:
        raise JavaMissing(["JAVA_HOME", "PATH", f"{jvm_folders}/*{WANTED}*"])
    usable = [java for java in found if java.version >= WANTED]
    if not usable:
        raise JavaTooOld(found[0].path, found[0].version, WANTED)
    return next((java for java in usable if java.version == WANTED), usable[0])


def _candidates(environ: Mapping[str, str], jvm_folders: Path) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path)
    for home in sorted(jvm_folders.glob(f"*{WANTED}*")):
        yield home / "bin" / "java"


def _ask(java: Path) -> Java | None:
    """The version of an executable, from its ``release`` file if there is one: running it costs a process."""
    if not java.is_file():
        return None
    release = java.resolve().parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    said = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    if not said:
        try:
            answer = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    if not said:
        return None
    full = said.group(1)
    major = re.match(r"(?:1\.)?(\d+)", full)  # 1.8.0_292 is Java 8
    return Java(java, int(major.group(1)), full) if major else None
