"""The audit trail: what operators did, to what, when and why. Entries are kept for ever.

One value for all of them, and one way to write it into a control row and to read it back. Rows of different
kinds name the subject differently, and rows of older versions lack some fields: ``AuditFormat`` reads both.
Nothing here decides where a row is kept, or which change it is committed with.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action. Field names are those of the stored rows.

    Attributes:
        what: The action, as the command is called: ``rewind``, ``accept``, ``forget``.
        who: The operator; where a run did it on its own, the run.
        reason: Why, in the operator's words.
        at: When: in µs, in a work journal in ms.
        about: The subject, where the row's place does not say it already: a keyspace, what closed a gate.
    """

    what: str
    who: str
    reason: str
    at: int
    about: str | None = None


@dataclass(frozen=True, slots=True)
class AuditFormat:
    """How control rows of one kind hold an entry.

    Attributes:
        about: The name of the subject's field; None where rows of this kind have none.
        action: The one action that rows of this kind are about, which they do not store; None where they do.
    """

    about: str | None = None
    action: str | None = None

    def to_row(self, entry: AuditEntry, **further: Any) -> dict[str, Any]:
        """The fields of the row, ``further`` ones after the entry's own."""
        row: dict[str, Any] = {} if self.action else {"what": entry.what}
        row |= {"who": entry.who, "reason": entry.reason, "at": entry.at}
        if self.about:
            row[self.about] = entry.about
        return row | further

    def to_json(self, entry: AuditEntry, **further: Any) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(self.to_row(entry, **further), sort_keys=True)

    def from_row(self, row: Mapping[str, Any]) -> AuditEntry:
        """The entry a row holds; fields that are not the entry's are the caller's business."""
        about = row.get(self.about) if self.about else None
        return AuditEntry(self.action or row["what"], row["who"], row["reason"], row["at"], about)

    def from_json(self, text: str) -> AuditEntry:
        """The entry that a row's text holds."""
        return self.from_row(json.loads(text))
