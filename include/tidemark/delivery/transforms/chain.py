"""A writer's transforms as a chain of steps, from a document to a document or to nothing.

Two writers may be handed the same document, so no step changes the one it gets. The same document always
comes out the same: a binding that is delivered twice must be written twice alike. What each transform does is
in the module that declares it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.transforms.document import Change, Document, Operation, Unfit
from tidemark.errors import with_fields
from tidemark.pipeline.problems import shortened
from tidemark.pipeline.transforms import TRANSFORMS, Transform


@with_fields
class TransformFailed(DeliveryError):
    """A transform cannot be applied to a message."""

    transform: str
    problem: str

    text = (
        "transform {transform}: {problem} The message was not written. Put the transform or the producer "
        "right."
    )


@dataclass(frozen=True, slots=True)
class _Step:
    place: str
    subject: str
    """What raises when it raises."""
    namespaces: re.Pattern[str]
    change: Change


class Chain:
    """The transforms of one writer, in their order."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self._transforms = tuple(transforms)
        self._steps = tuple(_step(number, each) for number, each in enumerate(self._transforms, start=1))

    def __reduce__(self) -> tuple[type["Chain"], tuple[tuple[Transform, ...]]]:
        return type(self), (self._transforms,)  # where it arrives, functions are found by their paths again

    def apply(self, document: Document, origin: str) -> Document | None:
        """What is left of a document; None when a transform drops it. Raises ``TransformFailed``.

        ``origin`` is the namespace the message came from: it decides which transforms apply, whatever an
        earlier one made of the document's namespace. A document that arrives as a delete has no data, so
        nothing applies to it.
        """
        if document.op is Operation.DELETE:
            return document
        for step in self._steps:
            if not step.namespaces.search(origin):
                continue
            try:
                changed = step.change(document)
            except Unfit as unfit:
                raise TransformFailed(step.place, str(unfit)) from None
            except Exception as error:
                said = f"{type(error).__name__}: {shortened(error)}"
                raise TransformFailed(step.place, f"{step.subject} raised {said.rstrip('.: ')}.") from error
            if changed is None:
                return None
            document = changed
        return document


def _step(number: int, declared: Transform) -> _Step:
    place = f"{number} ({declared.called})"
    try:
        change = TRANSFORMS.find(declared.called).change(declared)
    except Unfit as unfit:
        raise TransformFailed(place, str(unfit)) from unfit
    return _Step(place, declared.subject, re.compile(declared.namespaces), change)
