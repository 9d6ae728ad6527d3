"""The fields that an action or an answer needs."""

import pytest

from tidemark_airflow.tasks.resume_request import (
    ResumeAction,
    ResumeAnswer,
    missing_of_answer,
    missing_of_run,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("conf", "missing"),
    [
        ({}, None),
        ({"action": "resume"}, None),
        ({"action": "stop", "reason": "maintenance"}, None),
        ({"action": "rewind", "id": 0, "reason": "again"}, None),
        ({"action": "acknowledge", "id": -1, "reason": "a test"}, None),
        ({"action": "stop"}, "say why, in the parameter `reason`: to stop needs one."),
        ({"action": "open", "reason": " "}, "say why, in the parameter `reason`: to open needs one."),
        ({"action": "rewind", "reason": "again"}, "say which id to rewind, in the parameter `id`."),
        ({"action": "acknowledge"}, "say which id to acknowledge, in the parameter `id`."),
    ],
)
def test_a_run_needs_what_its_action_needs(conf, missing):
    assert missing_of_run(conf) == missing


@pytest.mark.parametrize("action", [action for action in ResumeAction if action != ResumeAction.RESUME])
def test_every_action_but_a_resume_needs_a_reason(action):
    assert "`reason`" in missing_of_run({"action": action, "id": 1})


def test_only_an_acknowledgement_needs_a_reason():
    assert missing_of_answer([ResumeAnswer.RETRY], {}) is None
    assert missing_of_answer([ResumeAnswer.ACKNOWLEDGE], {"reason": "a test"}) is None
    assert "say why" in missing_of_answer([ResumeAnswer.ACKNOWLEDGE], {"reason": None})
    assert missing_of_answer(None, {}) is None
