"""``tidemark.AsyncWork``: the same journal for programs with an event loop.

``Work`` runs in threads of the loop's executor. A call that is cancelled may take effect anyway: repeat it
with the same arguments.
"""

import asyncio
from typing import Any, Self

from tidemark.async_facade import AsyncFacade, in_thread, list_in_thread
from tidemark.work.client import Work
from tidemark.work.model.declaration import WorkDeclaration


class AsyncWork(AsyncFacade[Work]):
    """One work journal, for ``async`` and ``await``.

    Parameters, results and errors of its methods are those of ``Work``. Where ``Work`` returns an iterator
    (``entries``, ``dead``, ``history``), ``AsyncWork`` returns a list. Made by ``open``, ``create`` or
    ``of_file``.
    """

    def __init__(self, work: Work) -> None:
        """Wraps an opened journal, which closing the facade closes.

        Args:
            work: The journal.
        """
        super().__init__(work)

    @classmethod
    async def open(cls, name: str, **options: Any) -> Self:
        """Opens a journal that was created before.

        Args:
            name: The journal's name.
            options: The keyword arguments of ``Work``.

        Returns:
            The opened journal.

        Raises:
            UnknownJournal: The keyspace has no journal of that name.
        """
        return cls(await asyncio.to_thread(Work, name, **options))

    @classmethod
    async def create(cls, declared: WorkDeclaration, **options: Any) -> tuple[Self, bool]:
        """Creates the journal, or stores its changed declaration.

        Args:
            declared: The journal's declaration.
            options: The keyword arguments of ``Work.create``.

        Returns:
            The opened journal, and whether anything was created or changed.

        Raises:
            NotTheSameJournal: See ``Work.create``.
        """
        work, is_changed = await asyncio.to_thread(Work.create, declared, **options)
        return cls(work), is_changed

    @classmethod
    async def of_file(cls, name: str, **options: Any) -> Self:
        """Opens the journal that a file in ``include/work`` declares.

        Args:
            name: The journal's name.
            options: The keyword arguments of ``Work.of_file``.

        Returns:
            The opened journal.

        Raises:
            UnknownJournal: See ``Work.of_file``.
            JournalRefused: See ``Work.of_file``.
            BadConnection: See ``Work.of_file``.
        """
        return cls(await asyncio.to_thread(Work.of_file, name, **options))

    @property
    def name(self) -> str:
        """The journal's name."""
        return self._blocking.name

    insert = in_thread(Work.insert)
    claim = in_thread(Work.claim)
    refresh = in_thread(Work.refresh)
    done = in_thread(Work.done)
    fail = in_thread(Work.fail)
    snooze = in_thread(Work.snooze)
    release = in_thread(Work.release)
    wait = in_thread(Work.wait)

    get = in_thread(Work.get)
    entries = list_in_thread(Work.entries)
    dead = list_in_thread(Work.dead)
    history = list_in_thread(Work.history)
    stats = in_thread(Work.stats)
    is_ready = in_thread(Work.is_ready)
    copies_warning = in_thread(Work.copies_warning)
    deeds = in_thread(Work.deeds)

    cancel = in_thread(Work.cancel)
    mark_seen = in_thread(Work.mark_seen)
    redrive = in_thread(Work.redrive)
    pause = in_thread(Work.pause)
    resume = in_thread(Work.resume)
