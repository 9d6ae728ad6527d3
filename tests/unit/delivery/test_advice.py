"""Item 5: advice follows from cause, position and attempts, and never names the wrong message."""

from dataclasses import replace

import pytest

from tidemark.delivery.operator.advice import advise
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState

pytestmark = pytest.mark.unit

ACK = "tidemark offsets ack orders archive"


def given(
    cause: Cause, first: int, last: int, through: int, *, position: int, failures: int = 1
) -> WriterState:
    gate = WriterGate(cause, first, last, through, "it makes no sense", 0, failures=failures)
    return WriterState("orders", "archive", 7, position, {}, gate)


def commands(state: WriterState, acknowledged: frozenset[int] = frozenset()) -> list[str]:
    return [hint.command for hint in advise(state, acknowledged).hints]


def test_an_open_gate_needs_no_advice():
    advice = advise(WriterState("orders", "archive", 7, 3, {}), ())
    assert (advice.lines, advice.sentence) == (
        ("orders/archive: open",),
        "orders/archive: the gate is open",
    )
    assert advice.to_dict() == {"situation": "open", "acknowledgeable": None, "hints": []}


def test_a_message_that_failed_once_is_looked_at_and_tried_again():
    state = given(Cause.MESSAGE, 4, 4, 7, position=3)
    assert commands(state) == [
        "tidemark log show orders --from 4 --to 4 --json",
        "tidemark resume orders archive",
    ]


def test_a_message_that_failed_again_may_be_let_pass():
    state = given(Cause.MESSAGE, 4, 4, 7, position=3, failures=2)
    assert commands(state)[-1] == f"{ACK} 4"
    assert "failed 2 times" in advise(state, ()).lines[-1]


def test_what_the_target_failed_at_is_never_let_pass():
    for failures in (1, 2, 9):
        state = given(Cause.TARGET, 4, 4, 7, position=3, failures=failures)
        assert commands(state) == ["tidemark resume orders archive", "tidemark gate open orders archive"]
        assert advise(state, ()).acknowledgeable is None


@pytest.mark.parametrize(
    ("position", "acknowledged", "left"),
    [
        pytest.param(4, {4}, "which is acknowledged: ids 5 to 7 are left", id="acknowledged"),
        pytest.param(3, {4}, "which is acknowledged: ids 5 to 7 are left", id="at the end of a binding"),
        pytest.param(4, set(), "which is finished: ids 5 to 7 are left", id="delivered meanwhile"),
        pytest.param(6, {4}, "which is acknowledged: id 7 is left", id="further on"),
    ],
)
def test_an_id_that_was_passed_is_not_named_again(position, acknowledged, left):
    state = given(Cause.MESSAGE, 4, 4, 7, position=position, failures=3)
    advice = advise(state, frozenset(acknowledged))
    assert (left in advice.lines[0], advice.acknowledgeable) == (True, None)
    assert not [command for command in commands(state, frozenset(acknowledged)) if command.startswith(ACK)]
    assert "tidemark resume orders archive" in advice.sentence


def test_the_last_message_of_what_failed_leaves_only_its_binding():
    advice = advise(given(Cause.MESSAGE, 7, 7, 7, position=6), {7})
    assert "its binding is left to be delivered, then the gate opens." in advice.lines[0]


def test_a_writer_that_an_operator_stopped_is_opened():
    state = given(Cause.HAND, 4, 4, 3, position=3)
    assert (commands(state), advise(state, ()).is_failure) == (["tidemark gate open orders archive"], False)


def test_a_failed_verification_is_verified_again():
    state = given(Cause.VERIFICATION, 0, 3, 3, position=3)
    assert commands(state)[0] == "tidemark resume orders archive"
    assert not [command for command in commands(state) if command.startswith(ACK)]


def test_a_target_that_was_made_again_gets_everything_by_a_rewind():
    state = given(Cause.REPLACED, 3, 3, 3, position=3)
    assert commands(state) == ["tidemark offsets rewind orders archive -1"]


@pytest.mark.parametrize(("position", "since"), [(-1, 0), (8, 9)], ids=["rewound already", "start: latest"])
def test_a_target_that_is_to_hold_nothing_yet_needs_no_rewind(position, since):
    state = replace(given(Cause.REPLACED, 3, 3, 3, position=position), since=since)
    assert commands(state) == ["tidemark resume orders archive"]


def test_the_sentence_has_where_why_and_the_ways_on():
    assert advise(given(Cause.TARGET, 4, 7, 7, position=3), ()).sentence == (
        "orders/archive: the gate is closed at ids 4 to 7 (target): it makes no sense; mend the target, then "
        "go on one message at a time: tidemark resume orders archive; go on in bulk: tidemark gate open "
        "orders archive"
    )


def test_every_cause_has_its_advice():
    assert {cause: bool(commands(given(cause, 4, 4, 7, position=3))) for cause in Cause} == dict.fromkeys(
        Cause, True
    )
