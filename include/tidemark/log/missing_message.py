"""Whether the log has a message with an id, and why not.

Read-only. After a compaction only the record of the capture distinguishes removed messages from holes. Where
a sweep has removed that record, the reason stays ambiguous.
"""

from enum import StrEnum

from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import readable_slices
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.control import LogControl


class Missing(StrEnum):
    """Why no message has an id."""

    BEYOND_THE_END = "beyond the end"
    COMPACTED = "compacted"
    HOLE = "hole"
    COMPACTED_OR_HOLE = "compacted or hole"


@with_fields
class NotInTheLog(LogError):
    """No message of the log has the given id."""

    pipeline: str
    id: int
    missing: Missing
    end: int
    compacted_below: int

    def __str__(self) -> str:
        match self.missing:
            case Missing.BEYOND_THE_END:
                problem = f"the log has ids from 0 to {self.end}" if self.end >= 0 else "the log is empty"
            case Missing.COMPACTED:
                problem = (
                    "compaction has taken its message away (the log is compacted below id "
                    f"{self.compacted_below})"
                )
            case Missing.HOLE:
                problem = "no message ever had this id: it is a hole"
            case Missing.COMPACTED_OR_HOLE:
                problem = (
                    f"the log is compacted below id {self.compacted_below} and has no message with this id "
                    "(any more)"
                )
        return (
            f"{self.pipeline}: {problem}, so {self.id} cannot be pinned. Nothing was changed. Messages "
            f"that can be: tidemark log show {self.pipeline}"
        )


def require_message(control: LogControl, folder: LogFolder, manifest: Manifest, id_: int) -> None:
    """Raise ``NotInTheLog`` where no message has this id."""
    missing = find_missing(control, folder, manifest, id_)
    if missing is not None:
        raise NotInTheLog(control.pipeline, id_, missing, manifest.end, manifest.compacted_below)


def find_missing(control: LogControl, folder: LogFolder, manifest: Manifest, id_: int) -> Missing | None:
    """Why the log has no message with an id; None where it has one."""
    if not 0 <= id_ <= manifest.end:
        return Missing.BEYOND_THE_END
    if any(folder.count_between(file, id_, id_) for file in manifest.files_between(id_, id_)):
        return None
    if id_ >= manifest.compacted_below:
        return Missing.HOLE
    binding = control.bindings_after(id_ - 1)[0]
    return _below_compaction(folder, control, binding, id_)


def _below_compaction(folder: LogFolder, control: LogControl, binding: Binding, id_: int) -> Missing:
    """Whether compaction has removed the message, according to the record of its capture."""
    readable = readable_slices(binding, control.accepted_losses())
    if not any(
        binding.id_of(s.topic, s.partition, s.lower)
        <= id_
        <= binding.id_of(s.topic, s.partition, s.upper - 1)
        for s in readable
    ):
        return Missing.HOLE
    captured = folder.read_captured(binding.t)
    if captured is None:
        return Missing.COMPACTED_OR_HOLE
    own = [file for file in captured.files if file.may_have(id_, id_)]
    if not own:
        return Missing.HOLE
    is_dense = all(file.count == file.last_id - file.first_id + 1 for file in own)
    return Missing.COMPACTED if is_dense else Missing.COMPACTED_OR_HOLE
