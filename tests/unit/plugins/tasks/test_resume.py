"""The tasks of a resume: actions with a reason, answers, and a gate that is still closed."""

import pytest
from tests.support.airflow_context import given_context
from tests.support.follow_world import round_that_ends
from tests.support.pipeline_world import given_stopped_at

from tidemark.app import resume as app
from tidemark.delivery.resume import Resumed

pytestmark = pytest.mark.unit


@pytest.fixture
def resume(monkeypatch, opened):
    from tidemark_airflow.tasks import resume

    monkeypatch.setattr(resume, "open_pipeline", lambda name: opened)
    return resume


def params(**given):
    return {"writer": "stream", "action": "resume", "id": None, "reason": None, "untried": False, **given}


@pytest.mark.parametrize(
    ("action", "task"), [("resume", "wait_for_target"), ("stop", "act"), ("rewind", "act")]
)
def test_the_action_chooses_the_next_task(resume, action, task):
    assert resume.choose.function(**given_context(**params(action=action))) == task


# Actions


def act(resume, **given):
    return resume.act.function("orders", **given_context(**params(**given)))


def test_a_writer_is_stopped_and_opened_with_a_reason(resume, house, stream):
    house.deliver(stream)
    assert act(resume, action="stop", reason="maintenance")["action"] == "stop"
    gate = house.positions.load("stream").gate
    assert gate.reason == "stopped by ann: maintenance"
    act(resume, action="open", reason="done")
    assert house.positions.load("stream").gate is None


def test_a_message_is_acknowledged_and_a_position_rewound(resume, house, stream, capsys, monkeypatch):
    given_stopped_at(house, 2, stream)
    monkeypatch.setattr(type(resume.open_pipeline("orders")), "dead_letters", house.letters)
    assert act(resume, action="acknowledge", id=2, reason="a test record")["ids"] == [2]
    assert "id 2 (orders/0, offset 2) is never written" in capsys.readouterr().out
    assert act(resume, action="rewind", id=-1, reason="again")["position"] == -1


def test_an_action_waits_for_the_round_that_has_the_writer(resume, house, stream):
    house.deliver(stream)
    with round_that_ends(house.positions, "stream"):
        act(resume, action="stop", reason="maintenance")
    assert house.positions.load("stream").gate is not None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"action": "stop"}, "say why, in the parameter `reason`"),
        ({"action": "rewind", "reason": "again"}, "say which id to rewind"),
        ({"action": "foget", "reason": "mistyped"}, "`foget` is no action; there is: acknowledge, rewind"),
        ({"action": "forget", "reason": "not here"}, "`forget` is no action"),
        ({"action": "open", "reason": "why not"}, "its gate is open"),
    ],
)
def test_what_cannot_be_done_is_refused_without_retries(resume, house, stream, given, said):
    from airflow.sdk.exceptions import AirflowFailException

    house.deliver(stream)
    before = house.positions.load("stream")
    with pytest.raises(AirflowFailException, match=said):
        act(resume, **given)
    assert house.positions.load("stream") == before


# Redelivery


def test_a_resume_returns_what_it_did(resume, monkeypatch):
    monkeypatch.setattr(app, "resume", lambda opened, writer, holder, show: Resumed(7, 3, None))
    result = resume.redeliver.function("orders", **given_context(**params()))
    assert (result["writer"], result["position"], result["gate"]) == ("stream", 7, "open")


def test_a_resume_that_was_asked_to_stop_is_retried(resume, monkeypatch):
    monkeypatch.setattr(app, "resume", lambda *given: Resumed(7, 3, None, interrupted=True))
    with pytest.raises(InterruptedError, match="asked to stop at id 7; what is done is kept"):
        resume.redeliver.function("orders", **given_context(**params()))


@pytest.mark.parametrize(("gate", "stuck"), [("stopped", True), ("open", False)])
def test_a_question_is_asked_only_where_the_gate_is_closed(resume, gate, stuck):
    assert resume.is_stuck.function({"gate": gate}) is stuck


# Answers


def answered(resume, house, chosen, **given):
    resumed = {"writer": "stream", "failed_id": 2, "failures": 2}
    answer = {"chosen_options": [chosen], "responded_by_user": {"name": "ann"}, "params_input": given}
    return resume.follow_answer.function("orders", resumed, answer)


def test_retry_starts_another_resume(resume, house, stream):
    given_stopped_at(house, 2, stream)
    version = house.positions.load("stream").gate.version
    assert answered(resume, house, "Retry") == [
        {"trigger_run_id": f"auto__stream__gate_{version}__after_2", "conf": {"writer": "stream"}}
    ]


def test_stop_starts_none(resume, house, stream):
    given_stopped_at(house, 2, stream)
    assert answered(resume, house, "Stop") == []


def test_an_acknowledgement_needs_its_reason_in_the_task_too(resume, house, stream):
    from airflow.sdk.exceptions import AirflowFailException

    given_stopped_at(house, 2, stream)
    with pytest.raises(AirflowFailException, match="say why"):
        answered(resume, house, "Acknowledge and dead-letter", reason=" ")


# The gate after the run


def check(resume, follows=None, **given):
    context = given_context(results={"follow_answer": follows}, **params(**given))
    return resume.check_gate.function("orders", **context)


def test_a_gate_that_is_still_closed_fails_a_resume(resume, house, stream):
    from airflow.sdk.exceptions import AirflowFailException

    given_stopped_at(house, 2, stream)
    with pytest.raises(AirflowFailException, match="the gate is closed at id 2"):
        check(resume)


def test_it_fails_no_run_that_another_resume_follows_or_that_stopped_it(resume, house, stream):
    given_stopped_at(house, 2, stream)
    stopped = {"writer": "stream", "position": 1, "gate": "stopped"}
    assert check(resume, follows=[{"trigger_run_id": "next"}]) == stopped
    assert check(resume, action="stop") == stopped


def test_a_writer_before_its_first_run_has_no_position(resume):
    assert check(resume) == {"writer": "stream", "position": -1, "gate": "open"}
