"""Proving that a log is what its control rows promise: every digest, every range, every gap explained.

Reads everything, changes nothing. What is wrong is collected, not raised: a person wants to see all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.log.binding import NOTHING_YET, Binding
from tidemark.log.control import LogControl
from tidemark.log.errors import LogError
from tidemark.log.files import LogFolder
from tidemark.log.loss import AcceptedLoss, LossKind
from tidemark.log.manifest import LogFile, Manifest
from tidemark.log.publish import read_log


@dataclass(frozen=True, slots=True)
class Verification:
    """What was looked at, and everything that is wrong with it."""

    pipeline: str
    end: int
    compacted_below: int
    files: int
    bytes: int
    messages: int
    bindings: int
    holes: int
    """Ids that a binding owns and no message has: markers of transactions, aborted records, losses."""
    losses: tuple[AcceptedLoss, ...]
    problems: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class LogVerifier:
    """Verifies one log step by step, so that whoever calls can show how far it is."""

    def __init__(self, control: LogControl, folder: LogFolder) -> None:
        self._folder = folder
        self.manifest = read_log(control, folder)
        self.bindings = [b for b in control.bindings_after(NOTHING_YET) if b.t <= self.manifest.t]
        self.losses = control.accepted_losses()
        self._problems: list[str] = []

    def files(self) -> Iterator[LogFile]:
        """Verify file after file; each is given when it is done."""
        for file in self.manifest.files:
            try:
                self._folder.verify(file)
                self._folder.verify_range(file)
            except LogError as error:
                self._problems.append(str(error))
            yield file

    def conclude(self) -> Verification:
        """The result, once all files were verified."""
        manifest = self.manifest
        ranges = [*range_problems(manifest, self.bindings), *offset_problems(self.bindings, self.losses)]
        owned = sum(binding.width for binding in self.bindings)
        return Verification(
            pipeline=manifest.pipeline,
            end=manifest.end,
            compacted_below=manifest.compacted_below,
            files=len(list(manifest.files)),
            bytes=manifest.bytes,
            messages=manifest.count,
            bindings=len(self.bindings),
            holes=owned - manifest.count,
            losses=tuple(self.losses),
            problems=(*self._problems, *ranges),
        )


def range_problems(manifest: Manifest, bindings: Sequence[Binding]) -> Iterator[str]:
    """Ids that two owners have, or none."""
    base, t = 0, NOTHING_YET
    for binding in bindings:
        if binding.base != base:
            yield f"the binding at {binding.t} begins with id {binding.base} instead of {base}"
        if binding.t <= t:
            yield f"the binding at {binding.t} does not follow the one at {t}"
        base, t = binding.end + 1, binding.t
    if base - 1 != manifest.end:
        yield f"the log ends at id {manifest.end}, its bindings at {base - 1}"
    last = NOTHING_YET
    by_t = {binding.t: binding for binding in bindings}
    for file in manifest.files:
        if file.first_id <= last:
            yield f"{file.path} begins with id {file.first_id}, the file before it ends at {last}"
        last = file.last_id
        owner = by_t.get(file.t)
        if owner is None:
            yield f"{file.path} belongs to a binding at {file.t} that does not exist"
        elif not owner.base <= file.first_id <= file.last_id <= owner.end:
            yield (
                f"{file.path} has ids {file.first_id} to {file.last_id}, but its binding at {owner.t} owns "
                f"{owner.base} to {owner.end}"
            )


def offset_problems(bindings: Sequence[Binding], losses: Sequence[AcceptedLoss]) -> Iterator[str]:
    """Offsets that no binding took, although nobody has accepted their loss."""
    reached: dict[tuple[str, int], int] = {}
    for binding in bindings:
        for s in binding.slices:
            before = reached.get((s.topic, s.partition))
            if before not in (None, s.lower) and not _explained(s.topic, s.partition, binding, losses):
                yield (
                    f"{s.topic}/{s.partition}: the binding at {binding.t} begins at offset {s.lower} instead "
                    f"of {before}, and no accepted loss explains it"
                )
            reached[s.topic, s.partition] = s.upper


def _explained(topic: str, partition: int, binding: Binding, losses: Sequence[AcceptedLoss]) -> bool:
    """Whether a loss between this binding and the ones before it moved the place where it begins."""
    whole_topic = (LossKind.RECREATED, LossKind.DELETED)
    return any(
        one.after < binding.base
        and one.loss.topic == topic
        and (one.loss.partition == partition or one.loss.kind in whole_topic)
        for one in losses
    )
