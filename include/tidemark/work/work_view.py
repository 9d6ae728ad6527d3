"""The read-only part of ``tidemark.Work``: entries, dead letters, history and figures of one work journal."""

from collections.abc import Iterator
from typing import Any

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.work.errors import BadRequest
from tidemark.work.model.entry_view import WorkEntry
from tidemark.work.queue.dead_letters import dead_letters
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.queue.journal import WorkJournal
from tidemark.work.queue.listing import Figures, figures, history, live_entries
from tidemark.work.queue.packets import checked_key


class WorkView:
    """What a program can read from a work journal. No method changes an entry or makes a claim."""

    def __init__(self, journal: WorkJournal) -> None:
        """Reads an opened journal.

        Args:
            journal: The journal, opened.
        """
        self._journal, self._parts = journal, journal.parts
        self.declared = journal.parts.declared

    @property
    def name(self) -> str:
        """The journal's name."""
        return self.declared.name

    @property
    def parts(self) -> Parts:
        """The journal's tables and its clock, for Tidemark's own sweep."""
        return self._parts

    def get(self, key: Any) -> WorkEntry | None:
        """The live entry of a key.

        Args:
            key: The text of a key of one text column, else a mapping of its columns.

        Returns:
            The entry; None where there is none, or it has expired.

        Raises:
            BadRequest: The key is not as declared.
        """
        entry = self._journal.get(checked_key(self.declared, key))
        return None if entry is None else WorkEntry.of_entry(self.declared, entry)

    def entries(self) -> Iterator[WorkEntry]:
        """Every live entry, smallest priority first.

        Returns:
            An iterator that reads each entry when the caller asks for it.
        """
        now = self._parts.clock()
        for entry in live_entries(self._parts, self._parts.registry.read(), now):
            yield WorkEntry.of_entry(self.declared, entry)

    def stats(self) -> Figures:
        """The journal in numbers. Reads every live entry.

        Returns:
            The figures; times are milliseconds since 1970.
        """
        return figures(self._parts, self._parts.clock())

    def is_ready(self) -> bool:
        """Whether a claim made now would return an entry.

        Returns:
            True while an entry is due; False while none is, or the journal is paused.
        """
        registered = self._parts.registry.read()
        return registered.paused is None and self._journal.is_due(registered)

    def copies_warning(self) -> str | None:
        """Checks the keyspace's replication factor against the size of its cluster.

        Returns:
            The problem and how to fix it; None where there is none.
        """
        return self._parts.copies_warning()

    def dead(self, *, unseen: bool = False) -> Iterator[WorkEntry]:
        """The dead letters that were not redriven, newest first.

        Args:
            unseen: True leaves out the letters that ``mark_seen`` was called for.

        Returns:
            An iterator over the letters.
        """
        for kept in dead_letters(self._parts, self._parts.clock()):
            if kept.seen is None or not unseen:
                yield WorkEntry.of_letter(self.declared, kept)

    def history(self, days: int = 7) -> Iterator[WorkEntry]:
        """The ended claims of the last days, newest first.

        Args:
            days: How many days before today; 0 is today only.

        Returns:
            An iterator over the claims. It is empty unless the journal's declaration has ``history``.

        Raises:
            BadRequest: ``days`` is not a whole number from 0 on.
        """
        if not isinstance(days, int) or days < 0:
            raise BadRequest(self.name, f"`days` is {days!r}, but must be a whole number from 0 on")
        ended = history(self._parts, self._parts.clock(), days)
        return (WorkEntry.of_run(self.declared, run) for run in ended)

    def deeds(self) -> list[AuditEntry]:
        """What operators did to the journal by hand.

        Returns:
            The twenty newest entries of the audit trail, newest first.
        """
        return self._parts.registry.deeds()
