"""The tasks of ``work.sweep`` about dead letters: publish them as asset events, then fail to report them.

A failed task publishes no asset event, so these are two tasks.
"""

from typing import Any

from airflow.sdk import Asset, AssetAlias, TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException

from tidemark_airflow.connections import look_up

ALL_DEAD = "work.dead"
"""The asset alias that collects the events of all journals."""


def dead_asset(journal: str) -> Asset:
    """The asset that gets an event whenever a sweep finds unseen dead letters of the journal."""
    return Asset(name=f"work.{journal}.dead", uri=f"tidemark://work/{journal}/dead", group="tidemark")


@task(
    task_id="find_dead",
    outlets=[AssetAlias(ALL_DEAD, group="tidemark")],
    multiple_outputs=False,
    trigger_rule=TriggerRule.ALL_DONE,  # report the others where one cannot be swept
    doc_md="Find dead letters that no person has looked at; one asset event per journal that has some.",
)
def find_dead(journals: list[str], **context: Any) -> dict[str, Any]:
    """Per journal, the number of unseen dead letters and the newest of them; journals that cannot be read."""
    from tidemark.work.dead_report import find_unseen, lines_about
    from tidemark.work.errors import UnknownJournal
    from tidemark.work.store.known_journals import Address, open_address

    found, problems = [], []
    for name in journals:
        address = Address.parse(name)
        try:
            unseen = find_unseen(open_address(address, look_up))
        except UnknownJournal as error:
            print(error)
            continue
        except Exception as error:  # the other journals are read whatever it is
            problems.append(f"{address}: its dead letters could not be looked at: {error}")
            continue
        print("\n".join(lines_about(unseen)) or f"{unseen.journal}: nothing to report")
        if unseen.count:
            event = context["outlet_events"][AssetAlias(ALL_DEAD)]
            event.add(dead_asset(unseen.journal), extra=unseen.to_dict())
        found.append(unseen.to_dict())
    return {"journals": found, "problems": problems}


@task(
    task_id="report_dead",
    trigger_rule=TriggerRule.ALL_DONE,
    doc_md="Fail where a journal with `report_dead: fail` has dead letters that no person has looked at.",
)
def report_dead(found: dict[str, Any], **context: Any) -> None:
    """Succeed where there is no unseen dead letter and the sweep itself has succeeded."""
    from tidemark.work.dead_report import UnseenLetters, failure_of

    if found is None:
        raise AirflowFailException("Dead letters were not looked for: see the log of `find_dead`.")
    problems = list(found["problems"])
    if context["ti"].xcom_pull(task_ids="sweep") is None:
        problems.append("The sweep has failed: see the log of `sweep`.")
    failure = failure_of([UnseenLetters.from_dict(one) for one in found["journals"]], problems)
    if failure is not None:
        raise AirflowFailException(failure)
