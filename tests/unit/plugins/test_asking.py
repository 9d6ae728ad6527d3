"""Which errors of a task are retried, and which need a person first."""

import pytest

from tidemark.errors import TidemarkError
from tidemark.journal.errors import Undecodable
from tidemark.log.errors import FileMissing
from tidemark.log.source import CompactedTopic

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """The module, with an Airflow that has a home of its own and no database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        from tidemark_airflow import asking

        yield asking


def test_an_error_that_needs_a_person_is_not_retried(asking):
    error = CompactedTopic("shop", "sales")
    with pytest.raises(asking.AirflowFailException) as failed, asking.asking_a_person():
        raise error
    assert str(failed.value) == str(error)


@pytest.mark.parametrize(
    "error",
    [
        TidemarkError("Try again."),
        FileMissing("shop", "0.parquet"),
        Undecodable("not JSON"),
        KeyError("a defect"),
    ],
)
def test_any_other_error_is_left_to_the_retries(asking, error):
    with pytest.raises(type(error)) as failed, asking.asking_a_person():
        raise error
    assert failed.value is error
