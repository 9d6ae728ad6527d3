"""A synchronisation of the objects with a dump that differs a little, beside a bare join of the same data."""

import json
from pathlib import Path

from oplog_objects import write_dump  # isort: skip
from oplog_processes import HERE  # isort: skip
from services import Own  # isort: skip
from submit import submit  # isort: skip
from tidemark.embedded.jars.class_archive import driver_java_options

TURNS = 3
"""Of which the first is not counted: Java compiles."""


def measure_sync(own: Own, folder: Path, count: int, differences: int) -> None:
    """Print the table of synchronisations."""
    dumps = []
    for turn in range(TURNS):  # each differs from the others, so that none is taken from an earlier one
        dumps.append(str(folder / f"dump-{turn}.json"))
        write_dump(Path(dumps[-1]), count, differences + 4 * turn)
    options = driver_java_options(own.settings, count)
    arguments = (json.dumps(dumps), str(folder / "joined"))
    done = submit(HERE / "oplog_sync_job.py", *arguments, java_options=options, memory="2g").answer
    print(f"\n| {count:,} objects, {differences:,} differences | s | of the bare join |\n|---|---|---|")
    base = sum(done["bare"][1:]) / (TURNS - 1)
    steps = {name: sum(done[name][1:]) / (TURNS - 1) for name in ("validate", "compare")}
    whole = {
        "bare join of the same data": base,
        "validate the dump": steps["validate"],
        "compare": steps["compare"],
        "validate and compare": sum(steps.values()),
        f"send {done['sent']:,} corrections": done["send"],
        "all of it": sum(steps.values()) + done["send"],
    }
    for name, seconds in whole.items():
        print(f"| {name} | {seconds:.1f} | {seconds / base:.2f} |")
    print(
        f"\nFound: {done['outcomes']}. The first turn: {done['bare'][0]:.1f} s of the bare join and ", end=""
    )
    print(f"{done['validate'][0] + done['compare'][0]:.1f} s of validation and comparison.")
