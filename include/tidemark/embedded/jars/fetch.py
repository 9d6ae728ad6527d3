"""The jars of the services: fetched once into the cache, and checked against jars.lock."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.embedded.errors import CacheNotWritable, JarDamaged, NoSpace, RegistryUnreachable
from tidemark.embedded.files import exclusive
from tidemark.embedded.jars.ivy import Fetching, Progress, flat_module, run_ivy, settings_xml
from tidemark.embedded.jars.lock_file import CONFS, Conf, Jar, file_sha256, jar_set, locked_jars
from tidemark.embedded.java import find_java
from tidemark.settings import Settings

SPARE = 100_000_000
"""Bytes that must stay free besides the jars and Ivy's copy of them."""


@dataclass(frozen=True, slots=True)
class Jars:
    """The folder of the jars, with one folder per conf."""

    folder: Path

    def classpath(self, conf: Conf) -> str:
        """The class path of Kafka or Cassandra, as ``java -cp`` takes it."""
        return str(self.folder / conf / "*")

    def named(self, conf: Conf, module: str) -> Path:
        """One jar, by the module it comes from."""
        return next(self.folder / conf / jar.name for jar in _of(conf) if jar.module == module)

    @property
    def spark(self) -> tuple[Path, ...]:
        """The jars on Spark's class path that read and write Kafka."""
        return tuple(self.folder / jar.conf / jar.name for jar in _of("spark"))


def jars_folder(settings: Settings) -> Jars:
    """The folder of the jars, fetched or not."""
    return Jars(settings.cache / "jars" / jar_set())


def ensure_jars(
    settings: Settings,
    only: Conf | None = None,
    progress: Progress = lambda _: None,
    *,
    verify: bool = False,
    free_space: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    environ: Mapping[str, str] = os.environ,
) -> Jars:
    """The jars, fetched if necessary. Sizes are always checked; digests after a fetch or with ``verify``."""
    jars = jars_folder(settings)
    confs: Sequence[Conf] = (only,) if only else CONFS
    if _absent(jars, confs):
        _probe(settings.cache)
        with exclusive(settings.cache / "jars" / ".lock"):
            if absent := _absent(jars, confs):  # another process may have fetched them while this one waited
                _fetch(settings, jars, absent, progress, free_space, environ)
    for conf in confs:
        _check(jars.folder, _of(conf), digests=verify)
    return jars


def _of(conf: Conf) -> list[Jar]:
    return [jar for jar in locked_jars() if jar.conf == conf]


def _absent(jars: Jars, confs: Sequence[Conf]) -> list[Conf]:
    """The confs whose folder does not have exactly the locked files."""
    return [conf for conf in confs if _names(jars.folder / conf) != {jar.name for jar in _of(conf)}]


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _fetch(
    settings: Settings,
    jars: Jars,
    confs: Sequence[Conf],
    progress: Progress,
    free_space: Callable[[Path], int],
    environ: Mapping[str, str],
) -> None:
    """Fetch whole confs into a staging folder, check them, then rename each to its place."""
    java = find_java(environ)
    wanted = [jar for conf in confs for jar in _of(conf)]
    downloads = settings.cache / "ivy"  # kept when a fetch fails, so that the next one continues
    needed = 2 * sum(jar.size for jar in wanted) + SPARE
    if (free := free_space(settings.cache)) < needed:
        raise NoSpace(settings.cache, needed, free)
    total = len({jar.coordinate for jar in wanted})
    progress(Fetching(0, total, ""))
    _remove_leftovers(jars.folder.parent)
    staging = Path(tempfile.mkdtemp(prefix=".staging-", dir=jars.folder.parent))
    try:
        xml = settings_xml(environ.get("DEFAULT_ARTIFACT_REPOSITORY"))
        log = settings.cache / "fetch.log"
        run_ivy(java, flat_module(wanted), xml, staging, downloads, log, wanted, progress, environ)
        if missing := [jar for jar in wanted if not (staging / jar.conf / jar.name).is_file()]:
            raise RegistryUnreachable([jar.coordinate for jar in missing], log)
        try:
            _check(staging, wanted, digests=True)
        except JarDamaged as damage:
            bad = next(jar for jar in wanted if str(jar) == damage.jar)
            shutil.rmtree(downloads / bad.organisation / bad.module, ignore_errors=True)
            raise
        progress(Fetching(total, total, ""))
        jars.folder.mkdir(parents=True, exist_ok=True)
        for conf in confs:
            if (jars.folder / conf).exists():
                (jars.folder / conf).rename(staging / f"{conf}.old")
            (staging / conf).rename(jars.folder / conf)
    except OSError as error:
        raise NoSpace(settings.cache) if error.errno == errno.ENOSPC else error from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(downloads, ignore_errors=True)


def _check(folder: Path, jars: Sequence[Jar], digests: bool) -> None:
    """Check jars against the lock file; the first damaged one is removed and named in the error."""
    for jar in jars:
        path = folder / jar.conf / jar.name
        if digests or path.stat().st_size != jar.size:
            found = file_sha256(path)
            if found != jar.sha256:
                path.unlink()
                raise JarDamaged(str(jar), jar.sha256, found)


def _remove_leftovers(folder: Path) -> None:
    """Remove staging folders of killed fetches. Called with the lock held, so none is in use."""
    for leftover in folder.glob(".staging-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _probe(cache: Path) -> None:
    """Fail before a long fetch if the cache cannot be written."""
    try:
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache / "jars"):
            pass
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise NoSpace(cache) from error
        raise CacheNotWritable(cache, error.strerror or str(error)) from error
