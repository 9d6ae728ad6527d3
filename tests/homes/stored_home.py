"""A home as one file: packed when its services are stopped, unpacked to another folder of another machine.

What every start writes anew is left out: configuration, logs, pid files. So are the commit logs of a
Cassandra that was drained, which are 32 MiB each and hold nothing. A home with a pid file in it is not
packed: its services may still write.
"""

import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

HOMES = Path(__file__).parent
FACTS = "facts.json"
"""What a home is expected to hold, beside its data."""
OPERATOR = "ann"
"""The user that commands are called by, when a home is made and when it is looked at."""
MADE_ANEW = (
    "logs",
    "tmp",
    "packages",
    "run/.lock",
    "kafka/server.properties",
    "kafka/log4j2.properties",
    "cassandra/cassandra.yaml",
    "cassandra/jvm.options",
    "cassandra/logback.xml",
    "cassandra/commitlog",
    "cassandra/hints",
    "cassandra/saved_caches",
    "cassandra/cdc_raw",
)


class StillInUse(Exception):
    """The home was not stopped."""


def stored_homes() -> list[Path]:
    """The files of all homes that are kept, by version."""
    return sorted(HOMES.glob("*.tar.xz"))


def pack(home: Path, file: Path) -> int:
    """Keep a home, all of whose services were stopped, as one file; its size in bytes."""
    if left := sorted(path.name for path in (home / "run").glob("*.pid")):
        raise StillInUse(f"{home} has {', '.join(left)}. Stop its services first: tidemark services down")
    skipped = {home / name for name in MADE_ANEW}
    with (
        lzma.open(file, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        _add(archive, home, home, skipped)
    return file.stat().st_size


def _add(archive: tarfile.TarFile, home: Path, path: Path, skipped: set[Path]) -> None:
    """One file or folder and what is below it, in an order that does not depend on the file system."""
    if path in skipped:
        return
    archive.add(path, str(path.relative_to(home)), recursive=False, filter=_of_no_user)
    if path.is_dir():
        for below in sorted(path.iterdir()):
            _add(archive, home, below, skipped)


def _of_no_user(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def unpack(file: Path, home: Path) -> dict[str, Any]:
    """Bring a stored home to a folder that does not exist yet; its facts.

    The ports that its services had are forgotten: the same home may run twice on one machine.
    """
    home.mkdir(parents=True)
    with tarfile.open(file) as archive:
        archive.extractall(home, filter="data")
    state = home / "run" / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text(encoding="utf-8")), "ports": {}}))
    facts: dict[str, Any] = json.loads((home / FACTS).read_text(encoding="utf-8"))
    return facts


def relocate(session: Any, before: str, after: str) -> int:
    """Let the control plane name the folders below ``after`` that it knew below ``before``; how many rows.

    The settings of a files writer, its path among them, may not change while the writer lives, and a real
    home does not move. Nothing but the beginnings of paths is changed.
    """
    rows = session.execute("SELECT kind, name, row, body FROM tidemark.object").all()
    moved = [one for one in rows if one.body and f"{before}/" in one.body]
    for one in moved:
        changed = session.execute(
            "UPDATE tidemark.object SET body = %s WHERE kind = %s AND name = %s AND row = %s IF body = %s",
            (one.body.replace(f"{before}/", f"{after}/"), one.kind, one.name, one.row, one.body),
        )
        assert changed.was_applied, f"another process changes {one.kind} {one.name}"
    return len(moved)
