"""Work journals in DAGs: wait until something is due, do it with claims that are kept, sweep.

A worker slot is held only while there is something to do. Whatever ends a task, no claim outlives it: what is
not done is failed with its error or given back.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseSensorOperator, task
from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark_airflow.connections import look_up
from tidemark_airflow.gates import NO_TIMEOUT
from tidemark_airflow.spark_app import ApplicationFailed, SparkAppOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.work.claimed_item import WorkItem
    from tidemark.work.client import Work
    from tidemark.work.drain import Stop

EVERY = 30.0
"""Seconds between two looks: the guarantee, whether or not anybody is woken up."""


def open_work(journal: str, owner: str | None = None) -> "Work":
    """A declared journal with the connections that Airflow has for it."""
    from tidemark.work.client import Work

    return Work.of_file(journal, look_up=look_up, owner=owner)


class WorkReadyTrigger(BaseTrigger):
    """Waits until an entry of a work journal is due."""

    def __init__(self, journal: str, every: float = EVERY) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.journal, self.every = journal, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        keys = {"journal": self.journal, "every": self.every}
        return f"{type(self).__module__}.{type(self).__name__}", keys

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, wait for the next date or for being woken up, and look again."""
        work = await asyncio.to_thread(open_work, self.journal)
        try:
            while not await asyncio.to_thread(work.is_ready):
                await asyncio.to_thread(work.wait, self.every)
        finally:
            await asyncio.to_thread(work.close)
        yield TriggerEvent({"journal": self.journal})  # type: ignore[no-untyped-call]


class WorkReadySensor(BaseSensorOperator):
    """Waits, without holding a worker, until an entry of a work journal is due."""

    template_fields = ("journal",)

    def __init__(self, *, journal: str, every: float = EVERY, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.journal, self.every = journal, every

    def execute(self, context: "Context") -> None:
        """Look once; then wait."""
        with open_work(self.journal) as work:
            if work.is_ready():
                return
        trigger = WorkReadyTrigger(self.journal, self.every)
        self.defer(trigger=trigger, method_name="go_on", timeout=NO_TIMEOUT)

    def go_on(self, context: "Context", event: dict[str, Any]) -> None:
        """Something is due."""
        self.log.info("%s: there is something to do", self.journal)


class ClaimWork(BaseOperator):
    """Claims due entries and calls ``handler`` with each; claims are refreshed while that takes its time.

    An entry whose handler returns is done; one whose handler raises has failed, comes back after its
    back-off, or becomes a dead letter, and the others go on. Where the task itself ends early (it is stopped,
    or times out) what is left is given back at once. Returns how many were done, failed, dead and lost.
    """

    template_fields = ("journal", "limit")

    def __init__(
        self, *, journal: str, handler: "Callable[[WorkItem], Any]", limit: int | str = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.journal, self.handler, self.limit = journal, handler, limit
        self._stop: Stop | None = None

    def execute(self, context: "Context") -> dict[str, int]:
        """Claim, do, and say what became of it."""
        from tidemark.work.drain import Stop, drain

        instance = context["ti"]
        owner = f"{instance.dag_id}/{instance.task_id}/{instance.run_id}"[:200]
        self._stop = Stop()
        with open_work(self.journal, owner) as work:
            result = drain(work, self.handler, int(self.limit), self.log.info, self._stop)
        self.log.info("%s: %s", self.journal, result)
        return result

    def on_kill(self) -> None:
        """Stop at once, and give back what is left: Airflow waits for a few seconds, and then kills."""
        if self._stop is not None:
            self._stop.ask()


class SweepWorkOperator(SparkAppOperator):
    """Runs ``spark_apps/sweep_work.py`` over work journals; returns its JSON summary.

    One that cannot be swept fails the task after the others have been, and so does a file that is refused.
    """

    template_fields: Sequence[str] = (*SparkAppOperator.template_fields, "journals", "plans_only")

    def __init__(self, *, journals: Any, plans_only: bool | str = False, **kwargs: Any) -> None:
        super().__init__(pipeline="work", app="sweep_work", **kwargs)
        self.journals, self.plans_only = journals, plans_only

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """Sweep."""
        from tidemark.work.loader import load_journals

        self.application_args = [part for name in self.journals for part in ("--journal", name)]
        if str(self.plans_only) == "True":
            self.application_args.append("--dry-run")
        result = super().execute(context)
        if not context["params"].get("journal") and (refused := load_journals().refused):
            raise ApplicationFailed("\n".join(str(refusal) for refusal in refused))
        return result

    def hand_over_connections(self, path: Path) -> None:
        """Write the connections of all journals; who needs one that cannot be used will say so."""
        from tidemark.connections import CassandraConnection, WorkConnections
        from tidemark.work.store.known_journals import Address

        found = {}
        for name in sorted({Address.parse(journal).connection for journal in self.journals}):
            try:
                found[name] = CassandraConnection.from_airflow(name, look_up(name))
            except Exception as error:
                self.log.error("%s: %s", name, error)
        WorkConnections(cassandra=found).write(path)


@task(
    task_id="plan",
    multiple_outputs=False,
    doc_md="Say what a sweep would do to every journal that was created; nothing is changed.",
)
def plan(**context: Any) -> list[str]:
    """The journals to sweep. What keeps one from being looked at fails the sweep, after all others."""
    from dataclasses import asdict

    from tidemark.work.errors import UnknownJournal
    from tidemark.work.queue.sweep import Sweep
    from tidemark.work.store.known_journals import find_known, open_address

    known = find_known(look_up, context["params"]["journal"])
    for problem in known.problems:
        print(problem)
    if known.problems and not known.addresses:
        raise ApplicationFailed("\n".join(known.problems))
    for address in known.addresses:
        try:
            print(asdict(Sweep(open_address(address, look_up), execute=False).run()))
        except UnknownJournal as error:
            print(error)
        except Exception as error:
            print(f"{address}: {error}")
    return [str(address) for address in known.addresses]


@task.short_circuit(task_id="is_wanted", doc_md="Go on where there is something to sweep.")
def is_wanted(journals: list[str]) -> bool:
    """Whether anything is to be done."""
    return bool(journals)
