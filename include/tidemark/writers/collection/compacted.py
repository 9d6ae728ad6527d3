"""Which collections may begin with a compacted log: those of which the messages that are left give the same
state."""

from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.delivery.transforms.fields import Omit, Pick, Rename
from tidemark.delivery.transforms.pretty import Pretty
from tidemark.delivery.transforms.skip import Skip
from tidemark.pipeline.transforms import Transform
from tidemark.writers.collection.kind import CollectionDeclaration

_POLICIES = {EnvelopeName.UPSERT: "latest", EnvelopeName.OPLOG: "oplog"}
"""The compaction policy that keeps the message that is the state of a key."""
_KEEPS_EVERY_MESSAGE = (Rename, Pick, Omit, Pretty)


def may_drop(transform: Transform) -> bool:
    """Whether a transform can drop a message: then an earlier one of the key would be its state."""
    if isinstance(transform, Skip):
        return transform.deleting_key is None
    return not isinstance(transform, _KEEPS_EVERY_MESSAGE)


def policies_of(declared: CollectionDeclaration) -> frozenset[str]:
    """The compaction policies after which a collection may begin with what is left of the log, unless
    ``refusal_of`` says why not."""
    return frozenset({_POLICIES.get(declared.envelope, "latest")})


def refusal_of(declared: CollectionDeclaration) -> str | None:
    """Why a collection needs every message, as a clause; None where it does not."""
    if declared.envelope not in _POLICIES:
        return f"with the envelope `{declared.envelope}` a row needs more than the last message of its key"
    for number, transform in enumerate(declared.transforms, start=1):
        if may_drop(transform):
            return (
                f"its transform {number} (`{transform.called}`) can drop a message: then an earlier one of "
                "its key, which may be gone, would be the state"
            )
    return None
