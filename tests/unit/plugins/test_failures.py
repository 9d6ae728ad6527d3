"""Errors that only a person can help with fail a task at once; others are retried."""

import pytest

from tidemark.errors import TidemarkError
from tidemark.journal.errors import Undecodable
from tidemark.log.errors import FileMissing

pytestmark = pytest.mark.unit


class NeedsPerson(TidemarkError):
    needs_person = True


def test_an_error_that_needs_a_person_is_not_retried():
    from airflow.sdk.exceptions import AirflowFailException

    from tidemark_airflow.failures import no_retry_if_person_needed

    with pytest.raises(AirflowFailException, match="the file is damaged"), no_retry_if_person_needed():
        raise NeedsPerson("the file is damaged")


@pytest.mark.parametrize(
    "error",
    [TidemarkError("busy"), FileMissing("shop", "0.parquet"), Undecodable("not JSON"), KeyError("a defect")],
)
def test_other_errors_pass_and_are_retried(error):
    from tidemark_airflow.failures import no_retry_if_person_needed

    with pytest.raises(type(error)) as failed, no_retry_if_person_needed():
        raise error
    assert failed.value is error
