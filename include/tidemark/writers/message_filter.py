"""Whether a single message gets through a writer's filter and transforms. Writes nothing."""

import re
from collections.abc import Mapping
from typing import Any

from tidemark.delivery.writer import BadMessage
from tidemark.pipeline.model import FilesDeclaration, KafkaDeclaration
from tidemark.writers.transformed import Transformation


def refusal_of(
    pipeline: str, declared: FilesDeclaration | KafkaDeclaration, message: Mapping[str, Any]
) -> str | None:
    """Why nothing of the message would be written; None where something would."""
    if re.search(declared.namespaces, message["namespace"]) is None:
        return f"its namespace {message['namespace']} is not one of this writer's ({declared.namespaces})."
    try:
        changed = Transformation(declared.transforms, pipeline, declared.name).apply(message)
    except BadMessage as bad:
        return f"it still cannot be understood: {bad.problem.rstrip('.')}."
    return "the transforms drop it: there is nothing to write." if changed is None else None
