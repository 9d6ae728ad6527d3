"""The long campaign of follow: rounds beside everything else, with deaths of task, engine and Kafka.

    python tests/soak/follow.py [--minutes 60] [--seed 1]

Needs ``make up``. A history is appended and followed while runs of replicate, compactions, purges and resumes
go on. The process that follows, the Spark engine and Kafka are killed in turn and come back. At the end a
reader must see what one run over the same records leaves, and small files must be merged. Ends with 1
otherwise.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script: nothing else leads to the tests

from tests.soak.journal_history import connect as connect_services
from tests.soak.journal_history import say
from tests.support.services.follow_campaign import FollowCampaign, given_campaign
from tests.support.services.journal_histories import PARTITIONS

from tidemark.cassandra.session import disconnect_all
from tidemark.cli.connections import look_up
from tidemark.connections import Connections, SparkConnection
from tidemark.embedded.lifecycle import all_records, up
from tidemark.log.model.manifest import MAX_FILES_PER_SEGMENT, Manifest
from tidemark.log.publish import read_log
from tidemark.pipeline.parts import RunLimits
from tidemark.settings import Settings

BETWEEN_DEATHS = 120.0
"""Seconds."""


@dataclass(frozen=True)
class Services:
    """The services of this home, which are killed and started again."""

    settings: Settings

    def kill(self, name: str) -> None:
        """``kill -9`` of one service, and a new one a few seconds later."""
        for record in all_records(self.settings):
            process = record.process() if record.name.startswith(name) else None
            if process is not None:
                process.kill()
                psutil.wait_procs([process], timeout=30)
        up(self.settings, (name,))


def connect() -> Connections:
    """The services of the environment, with the engine."""
    spark = SparkConnection.from_airflow("spark_default", look_up("spark_default"))
    return connect_services().model_copy(update={"spark": spark})


def read_manifest(campaign: FollowCampaign) -> Manifest:
    """The log as it is now."""
    runs = campaign.follow.runs
    return read_log(runs.control, runs.folder)


def has_few_files(log: Manifest) -> bool:
    """Whether the files are as few as merging promises. The active segment is left alone until it closes."""
    return (
        log.closed_file_count <= log.closed_segment_count * PARTITIONS * 2
        and len(log.active.files) < MAX_FILES_PER_SEGMENT + PARTITIONS
    )


def run(campaign: FollowCampaign, services: Services, minutes: float) -> list[str]:
    """The campaign with its deaths; everything that is wrong at the end."""

    def kill_follow() -> None:
        campaign.kill_follow()

    def kill_engine() -> None:
        """In the middle of a binding that is large enough for Spark."""
        campaign.append(2 * RunLimits().max_records_in_process)
        services.kill("spark")

    def kill_kafka() -> None:
        services.kill("kafka")

    deaths: tuple[Callable[[], None], ...] = (kill_follow, kill_engine, kill_kafka)
    campaign.start()
    end = time.monotonic() + 60 * minutes
    for death in itertools.cycle(deaths):
        campaign.wait(min(BETWEEN_DEATHS, 20 * minutes, max(0.0, end - time.monotonic())))
        if campaign.failures or time.monotonic() >= end:
            break
        death()
        say(death.__name__.replace("_", " "), campaign.began)
    campaign.finish(lambda: has_few_files(read_manifest(campaign)))
    return [*campaign.failures, *campaign.differing()]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="follow", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="how long everything goes on")
    parser.add_argument("--seed", type=int, default=1, help="what the history is made from")
    given = parser.parse_args(argv)
    wrong: list[str] = []
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            pytest.MonkeyPatch.context() as patch,
            given_campaign(Path(folder), connect(), patch, given.seed) as campaign,
        ):
            wrong = run(campaign, Services(Settings.read()), given.minutes)
            log = read_manifest(campaign)
            closed = f"{log.closed_file_count} files in {log.closed_segment_count} closed segments"
            say(f"{campaign.counts}; {closed}, {len(log.active.files)} in the active one", campaign.began)
            print("\n".join(wrong) or "nothing lost, doubled or out of order")
    finally:
        disconnect_all()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
