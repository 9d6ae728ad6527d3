"""The pipelines that the control plane knows, whether a file declares them or not. Read-only.

A pipeline is known from its first binding or its first writer until it is forgotten. Its objects outlive
that, because versions and fencing tokens must never be reused. An object that holds nothing but those and
audit entries does not count.
"""

from collections.abc import Collection, Sequence

from tidemark.consensus.objects import Consensus, ObjectKind
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.positions import Positions
from tidemark.errors import did_you_mean, with_fields
from tidemark.log.state.control import GATE, HEAD, LogControl
from tidemark.log.state.forgotten import MARK
from tidemark.log.state.registered_writers import enrolled


@with_fields
class NotKnown(DeliveryError):
    """Neither a file nor the control plane has a pipeline of this name."""

    pipeline: str
    known: Sequence[str]

    def __str__(self) -> str:
        listed = f"Known there: {', '.join(self.known)}." if self.known else "It knows none."
        hint = did_you_mean(self.pipeline, self.known, listed)
        return f"No file declares a pipeline `{self.pipeline}`, and the control plane knows none. {hint}"


def names_in_control_plane(consensus: Consensus) -> set[str]:
    """The names of all pipelines that ever had a state, including forgotten ones."""
    return {
        *consensus.names(ObjectKind.BINDINGS),
        *consensus.names(ObjectKind.LOG),
        *(name.partition("/")[0] for name in consensus.names(ObjectKind.WRITER)),
    }


def known_pipelines(consensus: Consensus) -> list[str]:
    """The names of all pipelines that have a state, sorted."""
    return [name for name in sorted(names_in_control_plane(consensus)) if is_known(consensus, name)]


def orphans(consensus: Consensus, declared: Collection[str]) -> list[str]:
    """The known pipelines that no file declares, sorted."""
    return [name for name in known_pipelines(consensus) if name not in declared]


def is_known(consensus: Consensus, pipeline: str) -> bool:
    """Whether the control plane has a state of this pipeline."""
    control = LogControl(consensus, pipeline)
    bindings = control.bindings_head()
    return (
        bindings.upper > 0
        or bool(bindings.reached)
        or bool(control.read_log_rows([HEAD, GATE, MARK]).rows)
        or bool(known_writers(control, Positions(consensus, pipeline)))
    )


def known_writers(control: LogControl, positions: Positions) -> list[str]:
    """The writers that are registered or that the log waits for, sorted."""
    waited_for = enrolled(control)
    registered = [name for name in control.writer_names() if positions.load(name) is not None]
    return sorted({*waited_for, *registered})
