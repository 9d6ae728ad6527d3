"""An archive of Spark's classes, already parsed and linked: a driver that maps it starts in half the time.

Java refuses an archive that does not fit (another Java, another class path) and goes on without it, so a
wrong one is slow at worst. It takes the better part of a minute to make, once per installation: nobody makes
it unasked.

Only with ``--driver-java-options`` or ``spark.driver.extraJavaOptions``: in ``JDK_JAVA_OPTIONS`` it would
also reach the little launcher that spark-submit starts first. And not with a ``SPARK_CONF_DIR`` that has
files in it, nor with ``spark.driver.extraClassPath``: the class path must begin as it did then.
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
"""For a driver that lives for seconds: the optimising compiler costs more than it gives."""
MANY_MESSAGES = 250_000
"""From here on the optimising compiler gives more than it costs (bench/README.md)."""


def archive_path(settings: Settings, java: Java) -> Path:
    """Where the archive for this Java and this pyspark is, or would be."""
    parts = (java.full_version, str(java.home), str(pyspark_folder()), version("pyspark"), jar_set())
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return settings.cache / "class-archive" / f"spark-{name}.jsa"


def driver_java_options(settings: Settings, messages: int = 0) -> str:
    """Options that make a driver's Java start quickly, with the archive when there is one.

    The more messages it has to move, the more it is worth to compile well.
    """
    compiler = QUICK if messages < MANY_MESSAGES else ""
    archive = archive_path(settings, find_java(os.environ))
    if not archive.is_file():
        return compiler
    quote = '"' if " " in str(archive) else ""  # Spark splits the options as a shell would
    return f"-XX:SharedArchiveFile={quote}{archive}{quote} {compiler}".rstrip()


def ensure_class_archive(settings: Settings) -> Path:
    """Make the archive unless it is there: some 40 s of work."""
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
        quiet = "-Xlog:disable -Xlog:all=error:stderr"  # it warns of every class it leaves out, hundreds
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
    """Keep the newest archives: every checkout has its own, and one takes 180 MB."""
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for archive in archives[KEPT:]:
        archive.unlink(missing_ok=True)
        archive.with_suffix(".log").unlink(missing_ok=True)
