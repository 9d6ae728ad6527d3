"""A class data sharing (CDS) archive of Spark's classes: a driver that uses it starts in half the time.

Java ignores an archive that does not match (another Java, another class path), so a wrong one costs only
time. Making it takes about a minute, once per installation, so it is made only on request.

Pass it with ``--driver-java-options`` or ``spark.driver.extraJavaOptions``: ``JDK_JAVA_OPTIONS`` would also
reach the launcher that spark-submit starts first. It cannot be used with a ``SPARK_CONF_DIR`` that has files,
nor with ``spark.driver.extraClassPath``: the class path must begin as it did when the archive was made.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tidemark.embedded.errors import ArchiveFailed
from tidemark.embedded.files import exclusive
from tidemark.embedded.jars.ivy import pyspark_folder
from tidemark.embedded.jars.lock_file import HERE, jar_set
from tidemark.embedded.java import Java, find_java
from tidemark.embedded.ports import LOOPBACK
from tidemark.settings import Settings

KEPT = 3
QUICK = "-XX:TieredStopAtLevel=1"
"""For a driver that runs for seconds, the optimising compiler costs more than it saves."""
MANY_MESSAGES = 250_000
"""From this many messages on, the optimising compiler saves more than it costs (bench/README.md)."""


def archive_path(settings: Settings, java: Java) -> Path:
    """Where the archive for this Java and this pyspark is, or would be."""
    parts = (java.full_version, str(java.home), str(pyspark_folder()), version("pyspark"), jar_set())
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return settings.cache / "class-archive" / f"spark-{name}.jsa"


def driver_java_options(settings: Settings, messages: int = 0) -> str:
    """Java options for a driver: the archive if there is one, and the quick compiler for few messages."""
    compiler = QUICK if messages < MANY_MESSAGES else ""
    return f"{archive_option(settings, find_java(os.environ))} {compiler}".strip()


def archive_option(settings: Settings, java: Java) -> str:
    """The Java option that uses the archive; empty if there is none."""
    archive = archive_path(settings, java)
    if not archive.is_file():
        return ""
    quote = '"' if " " in str(archive) else ""  # Spark splits the options as a shell would
    return f"-XX:SharedArchiveFile={quote}{archive}{quote}"


def ensure_class_archive(settings: Settings) -> Path:
    """Make the archive if it does not exist, in about 40 s. Raises ``ArchiveFailed``."""
    java = find_java(os.environ)
    archive = archive_path(settings, java)
    if not archive.is_file():
        with exclusive(archive.parent / ".lock"):
            if not archive.is_file():
                _make(archive, java)
    return archive


def _make(archive: Path, java: Java) -> None:
    log = archive.with_suffix(".log")
    with tempfile.TemporaryDirectory(prefix=".making-", dir=archive.parent) as folder:
        draft = Path(folder) / "spark.jsa"
        quiet = "-Xlog:disable -Xlog:all=error:stderr"  # it warns about each of hundreds of classes
        command = [str(pyspark_folder() / "bin" / "spark-submit"), "--master", "local[2]"]
        command += ["--driver-java-options", f'-XX:ArchiveClassesAtExit="{draft}" {QUICK} {quiet}']
        environ = {**os.environ, "JAVA_HOME": str(java.home), "SPARK_HOME": str(pyspark_folder())}
        environ |= {"SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
        environ.pop("SPARK_CONF_DIR", None)
        with log.open("wb") as output:
            code = subprocess.call(
                [*command, str(HERE / "warm_up.py")], env=environ, cwd=folder, stdout=output, stderr=output
            )
        if code != 0 or not draft.is_file():
            raise ArchiveFailed(log)
        draft.replace(archive)
    _drop_old(archive.parent)


def _drop_old(folder: Path) -> None:
    """Keep only the newest archives: every checkout has its own, of 180 MB."""
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for archive in archives[KEPT:]:
        archive.unlink(missing_ok=True)
        archive.with_suffix(".log").unlink(missing_ok=True)
