"""The declaration of transforms in a pipeline file, and of kinds of transforms.

In the file a list of mappings with one key each, the transform's name: ``[{omit: {fields: [card]}}]``. A
kind is a ``TransformKind``: the model of its settings, and the function that turns settings into a change
of documents. What cannot work for any message is refused when the file is loaded, and not at the first
message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, SerializationInfo, ValidationInfo, WrapSerializer

from tidemark.errors import did_you_mean
from tidemark.pipeline.extensions import ExtensionPoint, UnknownKind
from tidemark.pipeline.parts import Declaration, Expression, read_as
from tidemark.pipeline.problems import Disagreement, Finding, quoted


class Transform(Declaration):
    """What every transform has."""

    called: ClassVar[str]
    """Its name in the file. Stored with the settings of writers, so it can never change."""

    namespaces: Expression = ".*"
    """The transform applies only to messages from these namespaces."""

    @property
    def subject(self) -> str:
        """What error texts name as the source of an exception."""
        return "it"

    @property
    def deleting_key(self) -> str | None:
        """The key by which it is told to make deletes of messages; None where it was not told to."""
        return None

    def __hash__(self) -> int:
        return hash((self.called, self.namespaces))  # the rest may hold mappings and lists


@dataclass(frozen=True, slots=True)
class TransformKind:
    """A kind of transform, as an entry point of group ``tidemark.transforms`` declares it."""

    declaration: type[Transform]
    """Its settings in a file. Imported wherever pipeline files are read, so its module imports nothing
    heavy."""
    change: Callable[..., Callable[[Any], Any]]
    """Makes of the settings what is done with every document: a
    ``tidemark.delivery.transforms.document.Change``. Called once where messages are delivered, so it is the
    place for heavy imports. It, and the change itself, may raise ``Unfit`` with a sentence."""

    @property
    def name(self) -> str:
        """The word in the file."""
        return self.declaration.called


TRANSFORMS = ExtensionPoint("tidemark.transforms", TransformKind)


def _declared(item: Any, info: ValidationInfo) -> Any:
    """A transform from a mapping with its name as the only key."""
    if isinstance(item, Transform):
        return item
    if not isinstance(item, dict) or not item:
        what = "text" if isinstance(item, str) else "an empty one" if item == {} else quoted(item)
        raise ValueError(
            f"must be a mapping from a transform's name, not {what}. Transforms: {TRANSFORMS.listed()}."
        )
    wrong = [Finding((str(key),), text) for key in item if (text := _refusal_of(str(key)))]
    if wrong:
        raise Disagreement(wrong)
    if len(item) > 1:
        raise ValueError(f"has {len(item)} transforms in it. Give each its own place in the list.")
    ((name, settings),) = item.items()
    return read_as(TRANSFORMS.find(name).declaration, settings, info, name)


def _refusal_of(key: str) -> str | None:
    """Why a key names no transform that can be used; None where it does."""
    try:
        TRANSFORMS.find(key)
    except UnknownKind:
        if any(key in kind.declaration.model_fields for kind in TRANSFORMS.usable()):
            return "is not a transform but a key of one. Indent it below the transform's name."
        hint = did_you_mean(key, TRANSFORMS.names(), f"Transforms: {TRANSFORMS.listed()}.")
        return f"is an unknown transform. {hint}"
    except ValueError as unusable:
        return str(unusable)
    return None


def _with_name(transform: Transform, _: Any, info: SerializationInfo) -> dict[str, Any]:
    settings = transform.model_dump(
        mode=info.mode,
        exclude_unset=info.exclude_unset,
        exclude_defaults=info.exclude_defaults,
        exclude_none=info.exclude_none,
    )
    return {transform.called: settings}


AnyTransform = Annotated[Transform, BeforeValidator(_declared), WrapSerializer(_with_name)]
"""A transform of any kind."""


def _without_deletes(transforms: tuple[Transform, ...]) -> tuple[Transform, ...]:
    findings = [
        Finding(
            (number, one.called, one.deleting_key),
            "is `delete`, which only a writer of kind `collection` takes: it has rows that a message can "
            "delete, and this kind writes one message after the other. Remove the key to drop such messages.",
        )
        for number, one in enumerate(transforms)
        if one.deleting_key is not None
    ]
    if findings:
        raise Disagreement(findings)
    return transforms


TransformsOfRows = tuple[AnyTransform, ...]
"""What the key ``transforms`` of a writer holds whose target has rows by key: transforms may delete them."""
Transforms = Annotated[TransformsOfRows, AfterValidator(_without_deletes)]
"""What the key ``transforms`` of a writer holds, for every other kind of writer that takes them."""
