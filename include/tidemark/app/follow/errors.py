"""Errors that end a run of a follow, beside those of its steps."""

from tidemark.delivery.errors import DeliveryError
from tidemark.errors import with_fields


@with_fields
class RoundFailed(DeliveryError):
    """A round could not deliver to a writer whose gate is open. A retry may."""

    pipeline: str
    failures: str

    text = (
        "{pipeline}: a round did not deliver everything. {failures} What was finished is kept, and the "
        "others went on; the next attempt continues."
    )


@with_fields
class WritersLeftOut(DeliveryError):
    """A run left writers out of its rounds, because of errors that a retry would only meet again."""

    needs_person = True

    pipeline: str
    errors: str

    text = (
        "{pipeline}: the run left writers out of its rounds because of errors that a retry would only meet "
        "again; the others were followed to its end. {errors} Repair the cause; the next run tries them "
        "again."
    )
