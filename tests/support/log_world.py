"""What every world with a log has: the objects of the control plane and the folder, opened anew each time.

A world brings a control plane and a folder; what happens in it is its own.
"""

from pathlib import Path

from tidemark.consensus.objects import Consensus
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl

PIPELINE = "orders"


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
