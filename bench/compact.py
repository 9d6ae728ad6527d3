"""Compaction of journal logs, compared with the straightforward Spark version.

Run by ``make bench``. Needs no service. Sizes can be named, in messages; ``1000000`` and ``5000000`` where
none is. Every entity has ten, of which two stay. Both ways begin with the same log, made anew.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from submit import submit  # isort: skip
from tidemark.embedded.jars.class_archive import driver_java_options, ensure_class_archive
from tidemark.settings import Settings

HERE = Path(__file__).parent


def measure(settings: Settings, way: str, messages: int) -> dict[str, Any]:
    """Run one of the two versions in its own Spark application."""
    with tempfile.TemporaryDirectory() as folder:
        options = driver_java_options(settings, messages)
        job = HERE / "compact_job.py"
        return submit(job, way, folder, str(messages), java_options=options, memory="3g").answer


def main(sizes: Sequence[str]) -> None:
    settings = Settings.read()
    ensure_class_archive(settings)
    print(
        "\n| messages | compact_log | plan, write, verify, publish | a second run | one window over all "
        "| ratio | bytes written | peak |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size in map(int, sizes):
        ours, theirs = measure(settings, "compact", size), measure(settings, "window", size)
        assert ours["kept"] == theirs["kept"], "the two ways keep other messages"
        print(
            f"| {size:,} | {ours['seconds']:.1f} s | {', '.join(f'{step:.1f}' for step in ours['steps'])} s "
            f"| {ours['again']:.2f} s "
            f"({ours['again'] / ours['seconds']:.1%}), 0 bytes | {theirs['seconds']:.1f} s "
            f"| {theirs['seconds'] / ours['seconds']:.2f} | {ours['written'] / 2**20:.0f} MiB and "
            f"{theirs['written'] / 2**20:.0f} MiB | {ours['peak'] / 2**20:.0f} MB a Python worker |",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ("1000000", "5000000"))
