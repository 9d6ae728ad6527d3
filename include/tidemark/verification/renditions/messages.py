"""Comparison of messages by their ids: what two renditions of files or of a topic hold of the log.

Both sides are streams in the order of ids, so any number of messages is compared in little memory. A message
is compared by its columns, not by where it is kept. A value that is a JSON object has a column for each of
its fields, so that a rule can be about one of them: ``value.owner``. How such a value is written (blanks,
the order of fields) counts in an exact comparison only: transforms write every value anew.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from tidemark.log.message_text import readable
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.pipeline.expect import RowChange
from tidemark.verification.renditions.difference import Fields, RowDifference, differing
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher

ID, VALUE = "id", "value"

Message = Mapping[str, Any]
"""A message with its columns, as in the log."""


def compare_messages(
    old: Iterable[Message], new: Iterable[Message], matcher: RuleMatcher, mode: VerificationMode
) -> DifferenceTally:
    """The differences of two streams of messages, both in the order of ids."""
    tally = DifferenceTally()
    for before, after in paired(old, new):
        tally.rows += 1
        if before == after:
            continue
        if (found := difference_of(before, after, mode)) is not None:
            id_ = (before or after or {})[ID]
            matcher.judge(tally, found, [id_])
    return tally


def paired(old: Iterable[Message], new: Iterable[Message]) -> Iterator[tuple[Message | None, Message | None]]:
    """The messages of both streams by their ids; None where one of them does not have it."""
    olds, news = iter(old), iter(new)
    before, after = next(olds, None), next(news, None)
    while before is not None or after is not None:
        if after is None or (before is not None and before[ID] < after[ID]):
            yield before, None
            before = next(olds, None)
        elif before is None or after[ID] < before[ID]:
            yield None, after
            after = next(news, None)
        else:
            yield before, after
            before, after = next(olds, None), next(news, None)


def difference_of(
    before: Message | None, after: Message | None, mode: VerificationMode
) -> RowDifference | None:
    """How two versions of a message differ; None where they do not."""
    old, new = fields_of(before), fields_of(after)
    where = f"id {(old or new or {})[ID]}"
    if old is None or new is None:
        change = RowChange.ADDED if old is None else RowChange.MISSING
        return RowDifference(change, where, (), old, new)
    columns = differing(old, new)
    if not columns and before and after and mode is VerificationMode.EXACT:
        old, new = readable(before), readable(after)
        columns = differing(old, new)
    return RowDifference(RowChange.CHANGED, where, columns, old, new) if columns else None


def fields_of(message: Message | None) -> Fields | None:
    """A message as plain values; a value that is a JSON object has a field for each of its own."""
    if message is None:
        return None
    shown = readable(message)
    found = _object(shown[VALUE])
    if found is None:
        return shown
    del shown[VALUE]
    return shown | {f"{VALUE}.{name}": one for name, one in found.items()}


def _object(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, str):
        return None
    try:
        found = json.loads(value, parse_float=Decimal)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found else None
