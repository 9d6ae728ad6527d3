"""The plan of a sweep: read-only, and no journal hides another."""

from types import SimpleNamespace

import pytest
from tests.support.airflow_context import given_context
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.store import known_journals
from tidemark.work.store.known_journals import Address

pytestmark = pytest.mark.unit


@pytest.fixture
def plan(monkeypatch):
    from tidemark_airflow.tasks import sweep_work

    house = WorkWorld(memory_stores(), given_declaration())

    def opened(address, look_up):
        if address.journal == house.declared.name:
            return house.parts
        raise OSError("no host answers")

    monkeypatch.setattr(known_journals, "open_address", opened)

    def run(*journals, problems=()):
        addresses = [Address("cassandra_default", "work", name) for name in journals]
        known = SimpleNamespace(addresses=addresses, problems=list(problems))
        monkeypatch.setattr(known_journals, "find_known", lambda look_up, only: known)
        return sweep_work.plan.function(**given_context(journal=None))

    run.journal = house.declared.name
    return run


def test_every_journal_is_listed_also_one_that_does_not_answer(plan, capsys):
    assert plan("unreachable", plan.journal) == [
        "cassandra_default/work/unreachable",
        f"cassandra_default/work/{plan.journal}",
    ]
    said = capsys.readouterr().out
    assert "unreachable: no host answers" in said
    assert f"'journal': '{plan.journal}'" in said


def test_without_any_journal_a_problem_fails_the_task(plan):
    from tidemark_airflow.failures import ApplicationFailed

    with pytest.raises(ApplicationFailed, match=r"pages\.yaml is refused"):
        plan(problems=["pages.yaml is refused"])


@pytest.mark.parametrize(("journals", "wanted"), [([], False), (["a/b/c"], True)])
def test_there_is_nothing_to_sweep_without_a_journal(journals, wanted):
    from tidemark_airflow.tasks.sweep_work import is_wanted

    assert is_wanted.function(journals) is wanted
