"""Whether a rendition can be built from what is left of a log, and from which time on it can answer.

A whole log builds everything. After compaction only where the messages that are left give the same state: a
kind names the policies after which they do, and may need more than that. This module reads no log; the caller
says what was compacted, and what was acknowledged.
"""

from collections.abc import Collection
from dataclasses import dataclass

from tidemark.errors import with_fields
from tidemark.outputs.errors import OutputError


@with_fields
class NotBuildable(OutputError):
    """The log lacks messages that a new rendition needs."""

    needs_person = True

    pipeline: str
    writer: str
    compacted_below: int
    problem: str

    text = (
        "{pipeline}/{writer}: no rendition can be built: the log is compacted below id {compacted_below}, "
        "and {problem}. Nothing was declared or changed. Go on with the renditions that there are, or add a "
        "writer that can begin with what is left."
    )


@dataclass(frozen=True, slots=True)
class CompactedPart:
    """What compaction has left of a log.

    Attributes:
        below: Ids below this one may be gone; 0 where the log is whole.
        policies: The policies that were ever applied.
        whole_from: The first time (µs) from which on the log has every message.
    """

    below: int = 0
    policies: Collection[str] = ()
    whole_from: int = 0


@dataclass(frozen=True, slots=True)
class BuildNeeds:
    """What a writer needs of a compacted log.

    Attributes:
        whole_after: The policies after which the messages that are left give the same state.
        refusal: Why this declaration needs every message all the same, as a clause; None where it does not.
        counts_acknowledged: Whether the policies of ``whole_after`` leave an acknowledged message out of
            account. Where they do not, it may have displaced the message that is the state without it.
    """

    whole_after: Collection[str]
    refusal: str | None = None
    counts_acknowledged: bool = False


def buildable(
    pipeline: str,
    writer: str,
    compacted: CompactedPart,
    needs: BuildNeeds,
    acknowledged: Collection[int] = (),
) -> int:
    """The first time (µs) that a rendition can answer for if it is built now; raises ``NotBuildable``.

    Args:
        pipeline: The pipeline's name, for errors.
        writer: The writer's name, for errors.
        compacted: What compaction has left.
        needs: What the writer needs.
        acknowledged: The ids that were acknowledged for any rendition of the writer.
    """
    if compacted.below <= 0:
        return 0
    if problem := _problem(compacted, needs, acknowledged):
        raise NotBuildable(pipeline, writer, compacted.below, problem)
    return compacted.whole_from


def _problem(compacted: CompactedPart, needs: BuildNeeds, acknowledged: Collection[int]) -> str | None:
    applied = {*compacted.policies}
    if not applied or not applied <= {*needs.whole_after}:
        usual = " or ".join(f"`{one}`" for one in sorted(needs.whole_after))
        return f"by another policy than {usual} ({', '.join(sorted(applied)) or 'unknown'})"
    if needs.refusal:
        return needs.refusal
    below = [id_ for id_ in acknowledged if id_ < compacted.below]
    if below and not needs.counts_acknowledged:
        return (
            f"id {min(below)}, which was acknowledged and counts as absent, may have displaced an earlier "
            "message of its key"
        )
    return None
