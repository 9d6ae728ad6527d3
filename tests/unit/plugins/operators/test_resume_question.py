"""The question of a resume: only answers that can help are offered."""

import pytest

from tidemark.delivery.operator.advice import advise
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState

pytestmark = pytest.mark.unit


def advice(cause: Cause, position: int = 2):
    gate = WriterGate(cause, 3, 3, 5, "it makes no sense", 0)
    return advise(WriterState("orders", "journal", 7, position, {}, gate), ())


@pytest.mark.parametrize(
    ("cause", "offered"),
    [
        (Cause.MESSAGE, ["Retry", "Acknowledge and dead-letter", "Stop"]),
        (Cause.TARGET, ["Retry", "Stop"]),
        (Cause.VERIFICATION, ["Retry", "Stop"]),
    ],
)
def test_only_a_message_that_failed_may_be_acknowledged(cause, offered):
    from tidemark_airflow.operators.resume_question import answers_to

    assert [answer.value for answer in answers_to(advice(cause))] == offered


def test_subject_and_body_name_what_failed():
    from tidemark_airflow.operators.resume_question import body_of, subject_of

    message, target = advice(Cause.MESSAGE), advice(Cause.TARGET)
    assert subject_of(message) == "orders/journal: id 3 failed again"
    assert subject_of(target) == "orders/journal: its target failed again"
    assert "with your reason, which is needed" in body_of(message)
    assert "so none can be acknowledged" in body_of(target)
