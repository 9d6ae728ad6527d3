"""A writer's transforms as a chain of steps, each from a document to a document or to None.

Several writers may get the same document, so no step changes its input. The result is deterministic: a
binding that is delivered twice must give the same output. Each transform is implemented in the module that
declares it.
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

    needs_person = True

    transform: str
    problem: str

    text = (
        "transform {transform}: {problem} The message was not written. Put the transform or the producer "
        "right."
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One transform, ready to be applied.

    Attributes:
        place: Its number and name, for error texts.
        subject: What an error text names as the source of an exception.
        namespaces: It applies to messages from these namespaces.
        change: The function that is applied.
    """

    place: str
    subject: str
    namespaces: re.Pattern[str]
    change: Change


class Chain:
    """The transforms of one writer, in their order.

    With ``ends_at_delete`` a document that has become a delete passes the remaining transforms untouched, as
    one does that arrives as a delete: for targets with rows by key, where dropping it would leave a row that
    has to go.
    """

    def __init__(self, transforms: Sequence[Transform], ends_at_delete: bool = False) -> None:
        self._transforms, self._ends_at_delete = tuple(transforms), ends_at_delete
        self._steps = tuple(_step(number, each) for number, each in enumerate(self._transforms, start=1))

    def __reduce__(self) -> tuple[type["Chain"], tuple[tuple[Transform, ...], bool]]:
        # Without the steps: they hold functions, which are not pickled.
        return type(self), (self._transforms, self._ends_at_delete)

    def apply(self, document: Document, origin: str) -> Document | None:
        """The transformed document; None when a transform drops it. Raises ``TransformFailed``.

        ``origin`` is the message's original namespace. It decides which transforms apply, also where an
        earlier one has changed the document's namespace. A document that arrives as a delete has no data and
        is returned unchanged.
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
                raised = f"{type(error).__name__}: {shortened(error)}"
                text = f"{step.subject} raised {raised.rstrip('.: ')}."
                raise TransformFailed(step.place, text) from error
            if changed is None:
                return None
            document = changed
            if self._ends_at_delete and document.op is Operation.DELETE:
                break
        return document


def _step(number: int, declared: Transform) -> _Step:
    place = f"{number} ({declared.called})"
    try:
        change = TRANSFORMS.find(declared.called).change(declared)
    except Unfit as unfit:
        raise TransformFailed(place, str(unfit)) from unfit
    return _Step(place, declared.subject, re.compile(declared.namespaces), change)
