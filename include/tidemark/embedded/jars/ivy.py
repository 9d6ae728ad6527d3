"""Runs Ivy, which is part of pyspark, and interprets its output."""

import importlib.util
import os
import re
import selectors
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tidemark.embedded.errors import FetchFailed, NoSpace, RegistryUnreachable
from tidemark.embedded.jars.lock_file import HERE, Jar
from tidemark.embedded.java import Java

RETRIEVE = "[conf]/[artifact]-[revision](-[classifier]).[ext]"
"""With the classifier: native variants of a jar differ by nothing else."""
SILENCE = 90.0
"""Seconds without output after which the registry counts as unreachable; Ivy would try every jar."""
_MISSING = re.compile(r"(?:module not found:|\[(?:FAILED|NOT FOUND)\s*\]|::) ([^#\s]+)#([^;\s]+);([^!:\s]+)")
_MAVEN = "http://ant.apache.org/ivy/maven"


class Fetching(NamedTuple):
    """Progress of a fetch: ``done`` of ``total`` jars; ``artifact`` is being fetched."""

    done: int
    total: int
    artifact: str


Progress = Callable[[Fetching], None]


def pyspark_folder() -> Path:
    """The folder of pyspark, found without importing it, which takes seconds."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed")
    return Path(spec.origin).parent


def flat_module(jars: Iterable[Jar]) -> str:
    """An Ivy file that requests exactly these jars; without POMs it takes a sixth of the time."""
    ET.register_namespace("m", _MAVEN)
    root = ET.Element("ivy-module", version="2.0")
    ET.SubElement(root, "info", organisation="tidemark", module="locked")
    confs = ET.SubElement(root, "configurations")
    dependencies = ET.SubElement(root, "dependencies")
    asked: dict[tuple[str, str, str, str], ET.Element] = {}
    for jar in jars:
        if confs.find(f"conf[@name='{jar.conf}']") is None:
            ET.SubElement(confs, "conf", name=jar.conf)
        key = (jar.conf, jar.organisation, jar.module, jar.version)
        if key not in asked:
            names = {"org": jar.organisation, "name": jar.module, "rev": jar.version}
            asked[key] = ET.SubElement(dependencies, "dependency", {**names, "conf": f"{jar.conf}->default"})
            asked[key].set("transitive", "false")
        artifact = ET.SubElement(asked[key], "artifact", name=jar.module, type="jar", ext="jar")
        if jar.classifier:
            artifact.set(f"{{{_MAVEN}}}classifier", jar.classifier)
    return ET.tostring(root, encoding="unicode")


def settings_xml(registry: str | None, resolve: bool = False) -> str:
    """ivysettings.xml, with another registry if given; with ``resolve``, POMs are read."""
    root = ET.parse(HERE / "ivysettings.xml").getroot()
    resolver = root.find("resolvers/ibiblio")
    assert resolver is not None
    if registry:
        resolver.set("root", registry)
    if resolve:
        del resolver.attrib["usepoms"], resolver.attrib["checksums"]
    return ET.tostring(root, encoding="unicode")


def run_ivy(
    java: Java,
    module: str,
    settings: str,
    into: Path,
    cache: Path,
    log: Path,
    expected: Sequence[Jar] = (),
    progress: Progress | None = None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Fetch the jars of ``module``, the text of an Ivy file, into ``into/<conf>/``."""
    work = into / "ivy"
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivy.xml").write_text(module, encoding="utf-8")
    (work / "ivysettings.xml").write_text(settings, encoding="utf-8")
    jar = next((pyspark_folder() / "jars").glob("ivy-*.jar"))
    command = [str(java.path), f"-Divy.cache.dir={cache}", "-jar", str(jar)]
    command += [
        "-settings",
        str(work / "ivysettings.xml"),
        "-ivy",
        str(work / "ivy.xml"),
        "-cache",
        str(cache),
    ]
    command += ["-types", "jar", "bundle", "-retrieve", str(into / RETRIEVE)]
    reader = OutputReader(len({jar.coordinate for jar in expected}), progress or (lambda _: None))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ) as process:
        try:
            for line in _lines(process, log):
                reader.read(line)
        except TimeoutError:
            raise RegistryUnreachable(sorted({jar.coordinate for jar in expected}), log) from None
        finally:
            if process.poll() is None:
                process.kill()
    if reader.no_space:
        raise NoSpace(cache)
    if reader.missing:
        raise RegistryUnreachable(sorted(reader.missing), log)
    if process.returncode != 0:
        raise FetchFailed(reader.last_lines, log)


def _lines(process: subprocess.Popen[bytes], log: Path) -> Iterator[str]:
    """The lines of Ivy's output, copied to a log. Raises ``TimeoutError`` after a long silence."""
    assert process.stdout is not None
    rest = b""
    with log.open("wb", buffering=0) as copy, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(SILENCE):
                raise TimeoutError
            if not (chunk := os.read(process.stdout.fileno(), 65536)):
                break
            copy.write(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace").strip()
        process.wait()
    yield rest.decode(errors="replace").strip()


class OutputReader:
    """Derives progress and failures from Ivy's output."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._done, self._progress = total, 0, progress
        self.missing: set[str] = set()
        self.no_space = False
        self.last_lines: list[str] = []

    def read(self, line: str) -> None:
        """Interpret one line of output."""
        if not line or set(line) <= set(". "):
            return
        if found := re.match(r"downloading \S*/(\S+\.jar)", line):
            self._progress(Fetching(self._done, self._total, found.group(1)))
        elif line.startswith("[SUCCESSFUL ]"):
            self._done = min(self._done + 1, self._total)
            self._progress(Fetching(self._done, self._total, ""))
        elif found := _MISSING.match(line):
            self.missing.add(":".join(found.groups()))
        self.no_space = self.no_space or "No space left on device" in line
        self.last_lines = [*self.last_lines[-4:], line]
