"""Settings of a rendition: everything in a pipeline's file and in its code that shapes a writer's output.

A rendition keeps the settings that it was declared with. Where those in the file differ, it goes on with its
own, and ``changed_settings`` says what differs. Where the code differs, it cannot go on: the old code is
gone. Nothing here reads a file or the control plane, and nothing decides whether to build a rendition.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tidemark.errors import with_fields
from tidemark.module_digests import imported_digests
from tidemark.outputs.errors import OutputError
from tidemark.outputs.model.rendition import Rendition

WRITER, SHAPE = "writer", "shape"


@with_fields
class CodeDiffers(OutputError):
    """The code on disk is not the code that a rendition was declared with."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    modules: tuple[str, ...]

    @property
    def which(self) -> str:
        """The modules in one line."""
        return ", ".join(self.modules)

    text = (
        "{pipeline}/{writer}: the code of rendition {number} has changed: {which}. Nothing was delivered to "
        "it, because old and new rows would mix. Install the earlier code again, or build the next "
        "rendition: tidemark renditions build {pipeline} {writer}"
    )


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs; None stands for one that is not there, or has its default.

    Attributes:
        key: Its place, such as ``writer.transforms``.
        before: The rendition's value.
        now: The value in the file.
    """

    key: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key} was {self.before!r} and is now {self.now!r}"


def settings_of(
    declared: BaseModel, shape: Mapping[str, Any], leaving_out: Collection[str] = ()
) -> dict[str, Any]:
    """The settings of a writer, normalised.

    A key that is left out is the same as one with its default, so a new key of a later version changes
    nothing. A default that a later version changes shows in the shape, which has defaults.

    Args:
        declared: The writer's declaration, from the pipeline's file. Not that of a writer with the place of a
            rendition: a place is no setting.
        shape: The writer's ``shape``, from the same declaration. It has the time zone and the source format.
        leaving_out: Keys of the declaration that say how renditions are built and kept, not what they hold.
    """
    keys = declared.model_dump(mode="json", exclude_defaults=True, exclude=set(leaving_out))
    normal: dict[str, Any] = json.loads(json.dumps({WRITER: keys, SHAPE: dict(shape)}, allow_nan=False))
    return normal


def code_digests(modules: Iterable[str]) -> dict[str, str]:
    """The digests of modules and of what they import of their own packages, by name; raises
    ``SourceMissing``."""
    found: dict[str, str] = {}
    for module in modules:
        found |= imported_digests(module)
    return dict(sorted(found.items()))


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[SettingChange]:
    """The settings that differ, sorted by their places."""
    old, new = dict(_flat(before)), dict(_flat(now))
    changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return [SettingChange(key, old.get(key), new.get(key)) for key in changed]


def refuse_other_code(pipeline: str, writer: str, rendition: Rendition, now: Mapping[str, str]) -> None:
    """Raise ``CodeDiffers`` where the code is not that of a rendition."""
    names = sorted({*rendition.code, *now})
    if changed := tuple(name for name in names if rendition.code.get(name) != now.get(name)):
        raise CodeDiffers(pipeline, writer, rendition.number, changed)


def _flat(settings: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting with its place. Lists are one value: what is in them has no name."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{place}{key}.")
        else:
            yield f"{place}{key}", value
