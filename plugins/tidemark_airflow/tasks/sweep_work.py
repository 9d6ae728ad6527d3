"""The tasks of ``work.sweep`` before the sweep itself: plan it, and skip it where there is no journal."""

from typing import Any

from airflow.sdk import task

from tidemark_airflow.connections import look_up
from tidemark_airflow.failures import ApplicationFailed


@task(
    task_id="plan",
    multiple_outputs=False,
    doc_md="Show what a sweep would do to every journal that exists. Read-only.",
)
def plan(**context: Any) -> list[str]:
    """The addresses of the journals to sweep. A journal that cannot be read fails the sweep, not the plan."""
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


@task.short_circuit(task_id="is_wanted", doc_md="Go on where there is a journal to sweep.")
def is_wanted(journals: list[str]) -> bool:
    """Whether there is a journal to sweep."""
    return bool(journals)
