"""Verification of journals against their logs: time by size of the journal.

Run by ``make bench``. Starts a Cassandra of its own, with a home and a port of its own. Parts can be named:
``10000`` and ``100000`` entities; both when none is.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from journal_load import Load, make_log  # isort: skip
from services import own_services  # isort: skip
from submit import submit  # isort: skip
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.settings import Settings

HERE = Path(__file__).parent
MESSAGES_AN_ENTITY = 10
MESSAGES_A_BINDING = 250_000
SAMPLE = 1_000


def measure(settings: Settings, entities: int) -> dict[str, float]:
    """Deliver a log, then verify all of it and a sample."""
    messages = MESSAGES_AN_ENTITY * entities
    each = min(messages, MESSAGES_A_BINDING)
    with tempfile.TemporaryDirectory() as folder:
        bindings = [
            make_log(folder, Load(each, entities, first=first), 2 * 10**15 + 10**10 * number)
            for number, first in enumerate(range(0, messages, each))
        ]
        options = driver_java_options(settings, messages)
        texts = json.dumps([binding.to_json() for binding in bindings])
        arguments = (
            folder,
            f"proved_{entities}",
            str(settings.cassandra_port),
            texts,
            str(SAMPLE),
        )
        return submit(HERE / "verify_job.py", *arguments, java_options=options).answer


def main(parts: Sequence[str]) -> None:
    with own_services(services=["cassandra"]) as own:
        found = {int(entities): measure(own.settings, int(entities)) for entities in parts}
    print("\n| entities | messages | verify all | entities/s | a sample of 1,000 | peak of a Python worker |")
    print("|---|---|---|---|---|---|")
    for entities, done in found.items():
        print(
            f"| {entities:,} | {MESSAGES_AN_ENTITY * entities:,} | {done['seconds']:.1f} s "
            f"| {entities / done['seconds']:,.0f} | {done['sample']:.1f} s | {done['peak'] / 2**20:.0f} MB |"
        )
    if len(found) == 2:
        (small, first), (large, second) = sorted(found.items())
        factor = second["seconds"] / first["seconds"]
        print(f"\n{large / small:.0f} times the entities: {factor:.1f} times as long")


if __name__ == "__main__":
    main(sys.argv[1:] or ("10000", "100000"))
