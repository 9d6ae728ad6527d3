"""What every world with a log has: the objects of the control plane and the folder, opened anew each time.

A world brings a control plane and a folder; what happens in it is its own.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tidemark.consensus.objects import Consensus
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.control import LogControl

PIPELINE = "orders"


def without_attempts(names: Iterable[str]) -> Counter[str]:
    """Names of a log's files; those of lists and manifests without what differs from attempt to attempt."""
    return Counter(re.sub(r"^((lists|manifests)/\d{20})-.*", r"\1", name) for name in names)


def content_of(manifest: Manifest) -> tuple:
    """The log that a manifest is, whatever its lists are called."""
    return (list(manifest.segments), manifest.t, manifest.end, manifest.compacted_below, manifest.policies)


class ControlPlaneWorld:
    """The pipeline ``orders`` in a control plane."""

    consensus: Consensus

    @property
    def control(self) -> LogControl:
        return LogControl(self.consensus, PIPELINE)

    @property
    def positions(self) -> Positions:
        return Positions(self.consensus, PIPELINE)


class LogWorld(ControlPlaneWorld):
    """With its log in a folder of its own."""

    root: Path

    @property
    def folder(self) -> LogFolder:
        return LogFolder(PIPELINE, str(self.root))
