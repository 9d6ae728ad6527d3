"""What a writer's declaration says about its output: settings, place, and the code that its transforms run.

A writer of another package need not keep its declaration in ``declared``. Its rendition has no settings but
the shape then, and a change of the shape stays refused, because nothing tells how the writer was built.
Nothing here reads the target or the control plane.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from tidemark.delivery.writer import Writer
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.settings import (
    SHAPE,
    WRITER,
    SettingChange,
    changed_settings,
    code_digests,
    settings_of,
)
from tidemark.pipeline.extensions import UnknownKind
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import Expiry
from tidemark.pipeline.writers import WRITERS, WriterDeclaration


@dataclass(frozen=True, slots=True)
class FirstSettings:
    """The settings and the place of a writer's first rendition."""

    settings: Mapping[str, Any]
    place: str


def first_settings(writer: Writer, shape: Mapping[str, Any]) -> FirstSettings:
    """The settings that a writer was registered with.

    Its declaration may have changed since, where an older version registered it and stored no more than its
    shape: keys of the shape are older than the declaration, so they are the ones that count.
    """
    declared = getattr(writer, "declared", None)
    if not isinstance(declared, WriterDeclaration):
        return FirstSettings({SHAPE: dict(shape)}, "")
    then = _as_registered(declared, shape)
    if then is None:  # what the target refuses then, as another shape
        return FirstSettings({SHAPE: dict(shape)}, declared.place)
    return FirstSettings(settings_of(then, shape, then.unshaping), then.place)


def code_now(settings: Mapping[str, Any]) -> Mapping[str, str]:
    """The digests of the modules that the transforms of these settings run now, by name."""
    transforms = settings.get(WRITER, {}).get("transforms", ())
    paths = (one["function"]["path"] for one in transforms if "function" in one)
    return _digests(tuple(sorted({path.rpartition(".")[0] for path in paths})))


def changed_in_file(
    pipeline: Pipeline, declared: WriterDeclaration, rendition: Rendition
) -> list[SettingChange]:
    """The settings of the file that differ from a rendition's; keys that are no settings are left out.

    The shape has the defaults of the version that made the rendition, so a default that a later version
    changes shows too.
    """
    shape: Mapping[str, Any] = rendition.settings.get(SHAPE, {})
    then: Mapping[str, Any] = rendition.settings.get(WRITER, {})
    whole = declared.model_dump(mode="json")
    now = settings_of(declared, {}, declared.unshaping)[WRITER] if then else {}
    zone = (pipeline.expiry or Expiry()).timezone
    outside = {"timezone": zone, "source_format": pipeline.source.kafka.format}
    # A key that a declaration leaves open has a derived value in the shape, such as a table's name.
    stated = {**{key: value for key, value in whole.items() if value is not None}, **outside}
    in_shape = {key for key in shape if key in stated}
    before = {key: shape[key] if key in in_shape else then.get(key) for key in {*then, *now, *in_shape}}
    after = {key: stated[key] if key in in_shape else now.get(key) for key in before}
    kept = before.keys() - declared.unshaping
    return changed_settings({key: before[key] for key in kept}, {key: after[key] for key in kept})


def has_times(output: Output) -> bool:
    """Whether readers read an output as of any time; where its kind is unknown here, they may."""
    settings = output.renditions[0].settings
    kind = settings.get(WRITER, {}).get("kind") or settings.get(SHAPE, {}).get("kind", "")
    return kind_has_times(kind, otherwise=WRITER in settings)


def kind_has_times(kind: str, *, otherwise: bool = False) -> bool:
    """Whether the output of a kind of writers is read as of any time; ``otherwise`` where it is not known
    here."""
    try:
        return WRITERS.find(kind).declaration.has_times
    except (UnknownKind, ValueError):
        return otherwise


def _as_registered(declared: WriterDeclaration, shape: Mapping[str, Any]) -> WriterDeclaration | None:
    """The declaration with the keys of a shape; None where they do not make one."""
    whole = declared.model_dump(mode="json")
    kind = shape.get("kind", declared.kind)
    older = {
        key: value for key, value in shape.items() if kind != declared.kind or _is_older(whole, key, value)
    }
    if not older:
        return declared
    kept = {"name": declared.name}
    if kind == declared.kind:
        kept = declared.model_dump(mode="json", exclude_defaults=True, exclude=set(declared.unshaping))
    try:
        model = WRITERS.find(kind).declaration
        return model.model_validate(
            {**kept, **{key: older[key] for key in older if key in model.model_fields}}
        )
    except (ValidationError, UnknownKind, ValueError):
        return None


def _is_older(whole: Mapping[str, Any], key: str, value: Any) -> bool:
    """Whether a declaration says something else than a shape; a key that it leaves open says nothing."""
    return whole.get(key) is not None and whole[key] != value


@lru_cache
def _digests(modules: tuple[str, ...]) -> Mapping[str, str]:
    """The digests of modules. They are those that the process has loaded, so they do not change."""
    return code_digests(modules)
