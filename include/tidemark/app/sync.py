"""Opens the synchronisations of a pipeline, and waits for its replication where no sensor does."""

import time
from collections.abc import Callable, Mapping

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.log.state.control import LogControl
from tidemark.oplog.sync.barrier import KnownOperations
from tidemark.oplog.sync.errors import CollectionBehind
from tidemark.oplog.sync.kafka_operations import TopicState
from tidemark.oplog.sync.synchronisation import Synchronisation

EVERY = 1.0
"""Seconds between two looks."""


def open_sync(opened: OpenPipeline) -> Synchronisation:
    """The synchronisations of a pipeline. Creates nothing. Raises ``NoOplogCollection``."""
    control = LogControl(opened.consensus, opened.pipeline.name)
    return Synchronisation.of(opened.pipeline, opened.connections, control)


def wait_until_reached(
    sync: Synchronisation,
    topic: TopicState,
    ends: Mapping[int, int],
    patience: float,
    show: Callable[[str], object],
    pause: Callable[[float], object] = time.sleep,
) -> KnownOperations:
    """Wait until the collection has everything before these offsets, for at most ``patience`` seconds.

    Raises ``CollectionBehind`` then.
    """
    deadline, is_shown = time.monotonic() + patience, False
    while True:
        try:
            return sync.reached(topic, ends)
        except CollectionBehind as behind:
            if time.monotonic() >= deadline:
                raise
            if not is_shown:
                show(str(behind))
                show(f"Waiting for it, at most {patience:g} s.")
                is_shown = True
        pause(EVERY)
