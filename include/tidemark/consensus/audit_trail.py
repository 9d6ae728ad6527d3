"""The audit trail: what operators did, to what, when and why. Entries are never removed.

All actions share one value, and one way to write it into a control row and to read it back. Rows of different
kinds name the subject differently, and rows of older versions lack some fields: ``AuditFormat`` reads both.
This module decides neither where a row is stored nor which change it is committed with.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action. The names of the fields are those of the stored rows.

    Attributes:
        what: The action, named after the command: ``rewind``, ``accept``, ``forget``.
        who: The operator; the run, where no operator was involved.
        reason: The operator's reason.
        at: The time of the action: in µs, in a work journal in ms.
        about: The subject, where the row's key does not name it already: a keyspace, the cause of a gate.
    """

    what: str
    who: str
    reason: str
    at: int
    about: str | None = None


@dataclass(frozen=True, slots=True)
class AuditFormat:
    """The layout of an entry in control rows of one kind.

    Attributes:
        about: The name of the subject's field; None where rows of this kind have none.
        action: The action, where all rows of this kind have the same and do not store it; else None.
    """

    about: str | None = None
    action: str | None = None

    def to_row(self, entry: AuditEntry, **further: Any) -> dict[str, Any]:
        """The fields of the row: those of the entry, then ``further`` ones."""
        row: dict[str, Any] = {} if self.action else {"what": entry.what}
        row |= {"who": entry.who, "reason": entry.reason, "at": entry.at}
        if self.about:
            row[self.about] = entry.about
        return row | further

    def to_json(self, entry: AuditEntry, **further: Any) -> str:
        """The row as JSON."""
        return json.dumps(self.to_row(entry, **further), sort_keys=True)

    def from_row(self, row: Mapping[str, Any]) -> AuditEntry:
        """The entry in a row; fields that do not belong to an entry are ignored."""
        about = row.get(self.about) if self.about else None
        return AuditEntry(self.action or row["what"], row["who"], row["reason"], row["at"], about)

    def from_json(self, text: str) -> AuditEntry:
        """The entry in a row's JSON."""
        return self.from_row(json.loads(text))
