"""Why nothing is delivered to a rendition."""

from tidemark.delivery.errors import DeliveryError
from tidemark.errors import with_fields
from tidemark.outputs.model.evidence import Taint


@with_fields
class OutputLeftOver(DeliveryError):
    """A new writer has the name of one that was forgotten, and whose output readers may still read."""

    needs_person = True

    pipeline: str
    writer: str
    place: str

    text = (
        "{pipeline}/{writer}: a writer of this name was forgotten, and its output is still in {place}: "
        "readers would take the old rows for the new writer's. Nothing was written, and it was not "
        "registered. Give the writer another name."
    )


@with_fields
class RecomputedOtherwise(DeliveryError):
    """Computing the rows of a time again gave others than those that were committed."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    taint: Taint

    def __str__(self) -> str:
        taint = self.taint
        return (
            f"{self.pipeline}/{self.writer}: computing the rows of time {taint.t} again gave others: shard "
            f"{taint.shard} has digest {taint.found} instead of {taint.committed} ({self._code}). Nothing "
            f"of it was written, and rendition {self.number} is frozen: readers keep the times before its "
            "frontier. Find what is not the same each time, such as a clock in a function, mend it, and "
            f"build the next rendition: tidemark renditions build {self.pipeline} {self.writer}"
        )

    @property
    def _code(self) -> str:
        before, now = self.taint.committed_code, self.taint.found_code
        changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if changed:
            return f"changed code: {', '.join(changed)}"
        return f"the same code: {', '.join(sorted(now)) or 'no functions'}"


@with_fields
class PlaceNotEmpty(DeliveryError):
    """The place of a new rendition has something in it already."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    problem: str

    text = (
        "{pipeline}/{writer}: rendition {number} cannot begin: {problem}, which would be taken for its "
        "output. Nothing was written, and its consumer was not registered. Empty the place and deliver "
        "again, or give the rendition up: tidemark renditions abandon {pipeline} {writer} {number}"
    )


@with_fields
class RenditionGivenUp(DeliveryError):
    """A delivery to a rendition that was abandoned or retired."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    state: str

    text = (
        "{pipeline}/{writer}: rendition {number} is {state}: nothing is delivered to it any more. Nothing "
        "was changed. Look at the others: tidemark renditions {pipeline} {writer}"
    )


@with_fields
class RenditionNotDeclared(DeliveryError):
    """A delivery to a rendition that the writer does not have."""

    needs_person = True

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: there is no rendition {number}. Nothing was delivered. Declare it first: "
        "tidemark renditions build {pipeline} {writer}"
    )


@with_fields
class CompactedMeanwhile(DeliveryError):
    """The log was compacted after a rendition was declared, and before its consumer was registered."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    since: int
    now: int

    text = (
        "{pipeline}/{writer}: rendition {number} was declared to answer from {since} on, and the log was "
        "compacted since: it could only answer from {now} on. Nothing was delivered, and its consumer was "
        "not registered. Declare another one: tidemark renditions abandon {pipeline} {writer} {number}, then "
        "tidemark renditions build {pipeline} {writer}"
    )
