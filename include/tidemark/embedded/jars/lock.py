"""``python -m tidemark.embedded.jars.lock``: resolve ivy.xml and write jars.lock. Run it to change a version.

The only step that trusts the registry and its checksums; every later fetch is checked against the result.
"""

import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from tidemark.embedded.jars.ivy import run_ivy, settings_xml
from tidemark.embedded.jars.lock_file import CONFS, HERE, Jar, file_sha256
from tidemark.embedded.java import find_java

HEADER = """\
# Every jar of the embedded services: conf/name sha256 size organisation:module:version[:classifier]
# Made from ivy.xml by: python -m tidemark.embedded.jars.lock
"""


def resolve(into: Path, cache: Path) -> list[Jar]:
    """Resolve ivy.xml, fetch its jars and describe them."""
    module = (HERE / "ivy.xml").read_text(encoding="utf-8")
    settings = settings_xml(os.environ.get("DEFAULT_ARTIFACT_REPOSITORY"), resolve=True)
    run_ivy(find_java(os.environ), module, settings, into, cache, log=into / "ivy.log")
    return sorted(jar for conf in CONFS for jar in _described(conf, into, cache))


def _described(conf: str, into: Path, cache: Path) -> Iterator[Jar]:
    """The jars of one conf, from the report that Ivy leaves in its cache."""
    for module in ET.parse(cache / f"tidemark-embedded-{conf}.xml").iter("module"):
        for revision in module.iter("revision"):
            for artifact in revision.iter("artifact"):
                names = [module.get("organisation", ""), module.get("name", ""), revision.get("name", "")]
                if artifact.get("name") != names[1] or artifact.get("ext") != "jar":
                    raise SystemExit(f"{':'.join(names)} has an artifact that the lock cannot express")
                names += [value for key, value in artifact.attrib.items() if key.endswith("classifier")]
                path = into / conf / ("-".join(names[1:]) + ".jar")
                yield Jar(conf, path.name, file_sha256(path), path.stat().st_size, ":".join(names))


def main() -> int:
    """Write jars.lock."""
    with tempfile.TemporaryDirectory(prefix="tidemark-lock-") as folder:
        cache = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "cache"
        jars = resolve(Path(folder), cache)
    text = HEADER + "".join(f"{jar.line}\n" for jar in jars)
    (HERE / "jars.lock").write_text(text, encoding="utf-8")
    print(f"{len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
