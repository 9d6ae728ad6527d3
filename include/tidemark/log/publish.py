"""publish: make a captured binding part of the log.

A new manifest file, then one compare-and-set of the log object. Whoever published first wins; publishing
the same binding again changes nothing.
"""

from tidemark.consensus.objects import Outpaced
from tidemark.errors import TidemarkError
from tidemark.log.binding import Binding
from tidemark.log.control import LogControl, LogHead
from tidemark.log.files import LogFolder
from tidemark.log.manifest import Manifest


class NotCaptured(TidemarkError):
    """A binding cannot be published before its capture has finished."""

    def __init__(self, pipeline: str, t: int) -> None:
        super().__init__(
            f"{pipeline}: the binding at {t} has no finished capture. Nothing was published. "
            "Clear the capture task of this run to do it again."
        )
        self.pipeline, self.t = pipeline, t


class OutOfTurn(TidemarkError):
    """A binding cannot be published while an older one is not."""

    def __init__(self, pipeline: str, t: int, base: int, end: int) -> None:
        super().__init__(
            f"{pipeline}: the binding at {t} begins with id {base}, but the log ends at {end}. Nothing was "
            "published. Run the pipeline's replicate DAG: it finishes the older binding first."
        )
        self.pipeline, self.t, self.base, self.end = pipeline, t, base, end


def read_log(control: LogControl, folder: LogFolder) -> Manifest:
    """The manifest that is the log now; an empty one when nothing was published."""
    head = control.log_head()
    if head.manifest is None or head.digest is None:
        return Manifest(control.pipeline)
    return folder.read_manifest(head.manifest, head.digest)


def publish(control: LogControl, folder: LogFolder, binding: Binding, segment_bytes: int) -> LogHead:
    """Put the binding's files into the log; the log's head afterwards."""
    before = control.log_head()
    if before.t >= binding.t:
        return before
    if binding.base != before.end + 1:
        raise OutOfTurn(control.pipeline, binding.t, binding.base, before.end)
    captured = folder.read_captured(binding.t)
    if captured is None:
        raise NotCaptured(control.pipeline, binding.t)
    manifest = read_log(control, folder).with_binding(binding.t, binding.end, captured.files, segment_bytes)
    path, digest = folder.write_manifest(manifest)
    after = LogHead(
        manifest=path,
        digest=digest,
        t=manifest.t,
        end=manifest.end,
        compacted_below=manifest.compacted_below,
        segments=len(manifest.segments),
        bytes=manifest.bytes,
        count=manifest.count,
    )
    try:
        return control.replace_log(before.version, after)
    except Outpaced:
        found = control.log_head()
        if found.t < binding.t:
            raise
        return found
