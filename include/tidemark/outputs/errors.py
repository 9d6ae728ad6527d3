"""Errors of outputs. Each names pipeline and writer; after each of them the output is as it was before.

Errors of readers are in ``reader_errors``, those of handovers beside the code that raises them.
"""

from tidemark.errors import TidemarkError, with_fields


class OutputError(TidemarkError):
    """A change of an output, or a read of one, was refused."""


@with_fields
class OutputDamaged(OutputError):
    """The control rows of an output contradict each other."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str

    text = (
        "{pipeline}/{writer}: the control rows of the output contradict each other: {problem}. Nothing was "
        "read from them or changed. Restore the control plane from a backup."
    )


@with_fields
class OutputMissing(OutputError):
    """The writer has no output yet."""

    pipeline: str
    writer: str

    text = (
        "{pipeline}/{writer}: it has no output yet. Nothing was read or changed. Its first delivery makes "
        "it: run {pipeline}.replicate."
    )


@with_fields
class CreatedOtherwise(OutputError):
    """Two processes create an output with different settings."""

    needs_person = True

    pipeline: str
    writer: str
    changes: tuple[str, ...]

    @property
    def what(self) -> str:
        """The differences in one line."""
        return "; ".join(self.changes)

    text = (
        "{pipeline}/{writer}: another process has created the output with other settings: {what}. Nothing "
        "was changed or delivered. Two versions of the pipeline's file or of its code are in use; leave one "
        "of them, then run it again."
    )


@with_fields
class UnknownRendition(OutputError):
    """No rendition has this number."""

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: there is no rendition {number}. Nothing was changed. List them: tidemark "
        "renditions {pipeline} {writer}"
    )


@with_fields
class ReasonMissing(OutputError):
    """An action that is kept for ever has no author or no reason."""

    needs_person = True

    pipeline: str
    writer: str
    action: str

    text = (
        "{pipeline}/{writer}: `{action}` needs an author and a reason, because both are kept with it. "
        'Nothing was changed. Add: --reason "…"'
    )


@with_fields
class TransitionRefused(OutputError):
    """A rendition's state does not allow the action."""

    pipeline: str
    writer: str
    number: int
    state: str
    wanted: str

    text = (
        "{pipeline}/{writer}: rendition {number} is {state} and cannot become {wanted}. Nothing was changed. "
        "Look at its history: tidemark renditions {pipeline} {writer}"
    )


@with_fields
class PlaceTaken(OutputError):
    """A rendition of this writer has, or had, the place."""

    pipeline: str
    writer: str
    place: str
    number: int

    text = (
        "{pipeline}/{writer}: {place} is the place of rendition {number}; a place is never used twice, so "
        "that dropping one rendition cannot drop another. Nothing was registered. Choose another place."
    )


@with_fields
class SettingsUsedBefore(OutputError):
    """A rebuild without an operator would return to settings that a rendition had already."""

    needs_person = True

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: the settings in the file are those of rendition {number}, so no rebuild starts "
        "by itself: two versions of the file may be in use at the same time. Nothing was registered. If the "
        "file is right, start it by hand: tidemark renditions build {pipeline} {writer}"
    )


@with_fields
class NotCaughtUp(OutputError):
    """A rendition is behind the active one and cannot be compared with it yet."""

    pipeline: str
    writer: str
    number: int
    position: int
    active_position: int

    text = (
        "{pipeline}/{writer}: rendition {number} is at position {position}, behind the active one at "
        "{active_position}. It was not verified. Deliver to it until it has caught up, then verify again."
    )


@with_fields
class NotCompared(OutputError):
    """Evidence of a verification is about other renditions than the two that matter."""

    pipeline: str
    writer: str
    number: int
    active: int
    compared: tuple[int, int]

    text = (
        "{pipeline}/{writer}: the evidence compares rendition {compared[0]} with {compared[1]}, not {number} "
        "with the active one, {active}. The rendition was not verified. Verify again."
    )


@with_fields
class DifferencesUnexplained(OutputError):
    """A verification found differences that no rule explains."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    differences: int
    explained: int

    text = (
        "{pipeline}/{writer}: rendition {number} differs from the active one in {differences} rows, of which "
        "rules explain {explained}. It was not verified. Read the table of differences; declare what is "
        "meant under `expect:`, or correct the settings and build again."
    )


@with_fields
class Tainted(OutputError):
    """A rendition was computed twice with different results, and is frozen."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    t: int
    frontier: int

    text = (
        "{pipeline}/{writer}: rendition {number} is tainted: computing time {t} again gave other rows. The "
        "second result was not written, and times below {frontier} stay readable. Build the next rendition: "
        "tidemark renditions build {pipeline} {writer}"
    )


@with_fields
class StillActive(OutputError):
    """The removal of the rendition that readers use."""

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: rendition {number} is the active one and cannot be retired. Nothing was "
        "removed. Hand over to another one first: tidemark renditions handover {pipeline} {writer}"
    )


@with_fields
class NotForgotten(OutputError):
    """A rendition would be retired before its times were forgotten."""

    pipeline: str
    writer: str
    number: int
    end: int
    since: int

    text = (
        "{pipeline}/{writer}: rendition {number} answers for times before {end}, and readers may ask from "
        "{since} on. It was not retired. Raise `since` first; retrying does both in order."
    )


@with_fields
class ShardsDiffer(OutputError):
    """Digests of one time are of different numbers of shards."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    t: int
    committed: int
    found: int

    text = (
        "{pipeline}/{writer}: rendition {number} has digests of {committed} shards at {t}, but {found} were "
        "computed. Nothing was written. The number of shards is fixed: to change it, build a rendition."
    )
