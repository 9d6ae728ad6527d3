"""Which writers are rebuilt without being asked: those with ``on_change: rebuild`` whose file has changed.

Never to settings that a rendition has or had. While two versions of a file are in use, as during a rollout,
each would otherwise rebuild what the other has just built.
"""

from dataclasses import dataclass

import structlog

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.delivery.renditions.declared import code_now
from tidemark.outputs.model.rendition import settings_digest
from tidemark.outputs.settings import SettingChange
from tidemark.pipeline.writers import OnChange

events = structlog.get_logger()

LONGEST_REASON = 500
"""Characters. The form of ``rebuild`` takes no longer reason."""


@dataclass(frozen=True, slots=True)
class ChangedWriter:
    """A writer that is to be rebuilt.

    Attributes:
        writer: The writer's name.
        changes: What differs from the active rendition.
        digest: Of the settings and the code that its next rendition gets: the same change is the same
            rebuild.
    """

    writer: str
    changes: tuple[SettingChange, ...]
    digest: str

    @property
    def reason(self) -> str:
        """Why it is rebuilt, for the audit trail; cut where settings are long, such as transforms."""
        whole = f"on_change: rebuild; {'; '.join(map(str, self.changes))}"
        return whole if len(whole) <= LONGEST_REASON else f"{whole[: LONGEST_REASON - 1]}…"


def changed_writers(opened: OpenPipeline) -> list[ChangedWriter]:
    """The writers of a pipeline that are rebuilt by themselves now. Read-only."""
    found = []
    for declared in opened.pipeline.writers:
        if declared.on_change is not OnChange.REBUILD:
            continue
        if (changed := _changed(WriterRenditions(opened, declared.name))) is not None:
            found.append(changed)
    return found


def names_changed(opened: OpenPipeline) -> list[str] | None:
    """The names of these writers, for the summary of a run that has done its own work; None where they cannot
    be told now. The error is logged, and met again by the task that starts the rebuilds."""
    try:
        return [one.writer for one in changed_writers(opened)]
    except Exception as error:
        events.warning("cannot tell which writers changed", pipeline=opened.pipeline.name, error=str(error))
        return None


def _changed(of: WriterRenditions) -> ChangedWriter | None:
    output = of.store.load()
    if output is None:
        return None
    changes = {one.number: tuple(of.changes(one)) for one in output.renditions}
    if not all(changes.values()):
        return None  # a rendition has these settings, or had them
    settings = of.settings_now()
    return ChangedWriter(
        of.writer, changes[output.active.number], settings_digest(settings, code_now(settings))
    )
