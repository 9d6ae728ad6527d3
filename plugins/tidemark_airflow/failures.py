"""How errors of the library end a task: retried, or failed for good where only a person can help."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemark.errors import TidemarkError


class ApplicationFailed(AirflowException):
    """A Spark application ended with an error; the text is the application's own."""


class ApplicationStopped(AirflowException):
    """A Spark application was stopped by a signal to its task."""


@contextmanager
def no_retry_if_person_needed() -> Iterator[None]:
    """Turn an error with ``needs_person`` into a failure without retries; others pass and are retried."""
    try:
        yield
    except TidemarkError as error:
        if error.needs_person:
            raise AirflowFailException(str(error)) from None
        raise
