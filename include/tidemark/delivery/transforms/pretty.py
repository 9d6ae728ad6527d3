"""The transform ``pretty``, which logs documents and changes nothing."""

import json
from typing import Annotated

import structlog
from pydantic import Field

from tidemark.delivery.transforms.document import Change, Document
from tidemark.pipeline.parts import Count
from tidemark.pipeline.transforms import Transform, TransformKind

events = structlog.get_logger()


class Pretty(Transform):
    """Logs the data, indented by ``spaces``; 0 puts it on one line."""

    called = "pretty"
    spaces: Annotated[Count, Field(ge=0)] = 2


def _logging(declared: Pretty) -> Change:
    def log(document: Document) -> Document:
        text = json.dumps(
            dict(document.data),
            ensure_ascii=False,
            indent=declared.spaces or None,
            default=str,  # a Decimal: all its digits, though in quotes
        )
        events.info("document", namespace=document.namespace, op=document.op.value, ts=document.ts, data=text)
        return document

    return log


PRETTY = TransformKind(Pretty, _logging)
