"""Why a rendition cannot be compared with the active one."""

from tidemark.errors import with_fields
from tidemark.verification.errors import VerificationError


@with_fields
class RenditionBehind(VerificationError):
    """A rendition has not reached the position of the active one."""

    pipeline: str
    writer: str
    number: int
    consumer: str
    position: int
    active_position: int

    @property
    def ids(self) -> int:
        """How many ids are missing."""
        return self.active_position - self.position

    text = (
        "{pipeline}/{writer}: rendition {number} is at position {position}, {ids} ids behind the active one "
        "at {active_position}. Nothing was compared. Deliver to it first: tidemark renditions "
        "build {pipeline} {writer} {number}"
    )


@with_fields
class RenditionAhead(VerificationError):
    """A rendition of a kind without times is beyond the position of the active one."""

    pipeline: str
    writer: str
    number: int
    consumer: str
    position: int
    active_position: int

    text = (
        "{pipeline}/{writer}: rendition {number} is at position {position}, and the active one only at "
        "{active_position}: what came in between would count as different. Nothing was compared. Deliver to "
        "the active one first: run {pipeline}.replicate"
    )


@with_fields
class RenditionStopped(VerificationError):
    """The gate of a rendition is closed, so it would fall behind after a handover."""

    pipeline: str
    writer: str
    number: int
    consumer: str
    reason: str

    @property
    def why(self) -> str:
        """The reason, without a full stop."""
        return self.reason.rstrip(".")

    text = (
        "{pipeline}/{writer}: the gate of rendition {number} is closed: {why}. Nothing was compared. Resume "
        "it first: tidemark resume {pipeline} {consumer}"
    )


@with_fields
class NothingToCompare(VerificationError):
    """A rendition cannot be verified in its state."""

    pipeline: str
    writer: str
    number: int
    problem: str

    text = (
        "{pipeline}/{writer}: rendition {number} {problem}, so there is nothing to verify. Nothing was "
        "compared. See what there is: tidemark renditions {pipeline} {writer}"
    )


@with_fields
class NotBuilt(VerificationError):
    """Nothing was ever delivered to a rendition."""

    pipeline: str
    writer: str
    number: int
    consumer: str

    text = (
        "{pipeline}/{writer}: nothing was delivered to rendition {number} yet. Nothing was compared. Build "
        "it first: tidemark renditions build {pipeline} {writer} {number}"
    )


@with_fields
class NotComparable(VerificationError):
    """Rows of two renditions cannot be matched with each other."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    active: int
    problem: str

    text = (
        "{pipeline}/{writer}: the rows of renditions {number} and {active} cannot be matched: {problem}. "
        "Nothing was compared. Check rendition {number} by hand, then hand over without evidence: tidemark "
        "renditions handover {pipeline} {writer} {number} --force --reason"
    )


@with_fields
class ActiveChanged(VerificationError):
    """Readers were handed over to another rendition while leases were taken."""

    pipeline: str
    writer: str
    number: int
    active: int

    text = (
        "{pipeline}/{writer}: rendition {active} became the active one meanwhile, so rendition {number} was "
        "not compared. Nothing was changed. Verify it again: tidemark renditions verify {pipeline} {writer} "
        "{number}"
    )
