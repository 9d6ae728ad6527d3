"""How an error of ours ends a task: at once where only a person can help, else after retries."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from tidemark.errors import TidemarkError


@contextmanager
def asking_a_person() -> Iterator[None]:
    """Fail without retries where only a person can help."""
    try:
        yield
    except TidemarkError as error:
        if error.needs_person:
            raise AirflowFailException(str(error)) from None
        raise
