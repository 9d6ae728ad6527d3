"""``tidemark.AsyncWork``: the same journal for programs with an event loop.

The work is done by ``Work`` in threads of the loop's executor. What is cancelled while it is under way may
have happened all the same: ask again with the same arguments.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.work.claimed_item import Held, Moment, WorkItem
from tidemark.work.client import Work
from tidemark.work.model.decision import Outcome
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import Priority
from tidemark.work.model.entry_view import WorkEntry
from tidemark.work.model.waiting import LONGEST_WAIT
from tidemark.work.queue.listing import Figures


class AsyncWork:
    """One work journal, for ``async`` and ``await``; arguments, results and errors are those of ``Work``.

    What ``Work`` gives one by one (``entries``, ``dead``, ``history``) comes as a list. Opened with ``open``,
    ``create`` or ``of_file``; an ``async with`` block closes it.
    """

    def __init__(self, work: Work) -> None:
        """The same journal, also for an event loop."""
        self._work = work

    @classmethod
    async def open(cls, name: str, **options: Any) -> Self:
        """As ``Work``."""
        return cls(await asyncio.to_thread(Work, name, **options))

    @classmethod
    async def create(cls, declared: WorkDeclaration, **options: Any) -> tuple[Self, bool]:
        """As ``Work.create``."""
        work, made = await asyncio.to_thread(Work.create, declared, **options)
        return cls(work), made

    @classmethod
    async def of_file(cls, name: str, **options: Any) -> Self:
        """As ``Work.of_file``."""
        return cls(await asyncio.to_thread(Work.of_file, name, **options))

    @property
    def name(self) -> str:
        """The journal's name."""
        return self._work.name

    async def insert(
        self,
        key: Any,
        payload: Mapping[str, Any],
        *,
        priority: int = Priority.UPDATES,
        process: Moment | timedelta | None = None,
        expires: Moment | timedelta | None = None,
        inserted: Moment | None = None,
    ) -> Outcome:
        """See ``Work.insert``."""
        return await asyncio.to_thread(
            self._work.insert,
            key,
            payload,
            priority=priority,
            process=process,
            expires=expires,
            inserted=inserted,
        )

    async def claim(
        self, limit: int = 1, *, owner: str | None = None, request: str | None = None
    ) -> list[WorkItem]:
        """See ``Work.claim``."""
        return await asyncio.to_thread(self._work.claim, limit, owner=owner, request=request)

    async def refresh(self, item: Held) -> WorkItem:
        """See ``Work.refresh``."""
        return await asyncio.to_thread(self._work.refresh, item)

    async def done(self, item: Held) -> Outcome:
        """See ``Work.done``."""
        return await asyncio.to_thread(self._work.done, item)

    async def fail(self, item: Held, error: str) -> Outcome:
        """See ``Work.fail``."""
        return await asyncio.to_thread(self._work.fail, item, error)

    async def snooze(self, item: Held, until: Moment | timedelta) -> Outcome:
        """See ``Work.snooze``."""
        return await asyncio.to_thread(self._work.snooze, item, until)

    async def release(self, item: Held) -> Outcome:
        """See ``Work.release``."""
        return await asyncio.to_thread(self._work.release, item)

    async def cancel(self, key: Any, *, who: str = "", reason: str = "") -> Outcome:
        """See ``Work.cancel``."""
        return await asyncio.to_thread(self._work.cancel, key, who=who, reason=reason)

    async def get(self, key: Any) -> WorkEntry | None:
        """See ``Work.get``."""
        return await asyncio.to_thread(self._work.get, key)

    async def entries(self) -> list[WorkEntry]:
        """See ``Work.entries``; all of them at once."""
        return await asyncio.to_thread(lambda: list(self._work.entries()))

    async def stats(self) -> Figures:
        """See ``Work.stats``."""
        return await asyncio.to_thread(self._work.stats)

    async def dead(self, *, unseen: bool = False) -> list[WorkEntry]:
        """See ``Work.dead``; all of them at once."""
        return await asyncio.to_thread(lambda: list(self._work.dead(unseen=unseen)))

    async def copies_warning(self) -> str | None:
        """See ``Work.copies_warning``."""
        return await asyncio.to_thread(self._work.copies_warning)

    async def mark_seen(self, letter: WorkEntry, *, who: str, reason: str) -> None:
        """See ``Work.mark_seen``."""
        await asyncio.to_thread(self._work.mark_seen, letter, who=who, reason=reason)

    async def is_ready(self) -> bool:
        """See ``Work.is_ready``."""
        return await asyncio.to_thread(self._work.is_ready)

    async def history(self, days: int = 7) -> list[WorkEntry]:
        """See ``Work.history``; all of it at once."""
        return await asyncio.to_thread(lambda: list(self._work.history(days)))

    async def deeds(self) -> list[AuditEntry]:
        """See ``Work.deeds``."""
        return await asyncio.to_thread(self._work.deeds)

    async def pause(self, who: str, reason: str) -> None:
        """See ``Work.pause``."""
        await asyncio.to_thread(self._work.pause, who, reason)

    async def resume(self, who: str, reason: str) -> None:
        """See ``Work.resume``."""
        await asyncio.to_thread(self._work.resume, who, reason)

    async def redrive(self, letter: WorkEntry, *, who: str = "", reason: str = "") -> Outcome:
        """See ``Work.redrive``."""
        return await asyncio.to_thread(self._work.redrive, letter, who=who, reason=reason)

    async def wait(self, seconds: float = LONGEST_WAIT) -> None:
        """See ``Work.wait``."""
        await asyncio.to_thread(self._work.wait, seconds)

    async def close(self) -> None:
        """See ``Work.close``."""
        await asyncio.to_thread(self._work.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
