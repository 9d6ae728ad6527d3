"""A closed gate: what it says, what it keeps, and when two say the same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.errors import TidemarkError
from tidemark.log.model.gate import LogGate, LogGateCause, LogStopped
from tidemark.log.model.loss import Loss, LossKind

pytestmark = pytest.mark.unit

LOSS = Loss(LossKind.RETENTION, "orders", 0, 5, 8)
LOST = LogGate(LogGateCause.LOST, "records are lost: …", 2_000, (5, 7), (LOSS,), None, 5_000)
NUMBERS = st.integers(0, 2**62)
LOSSES = st.builds(
    Loss,
    kind=st.sampled_from(LossKind),
    topic=st.text(),
    partition=NUMBERS,
    lower=NUMBERS,
    upper=NUMBERS,
    topic_id=st.none() | st.text(),
)
GATES = st.builds(
    LogGate,
    cause=st.sampled_from(LogGateCause),
    reason=st.text(),
    t=st.none() | NUMBERS,
    ids=st.none() | st.tuples(NUMBERS, NUMBERS),
    losses=st.lists(LOSSES, max_size=3).map(tuple),
    captured=st.none() | st.text(),
    at=NUMBERS,
)


@settings(max_examples=40, deadline=None, database=None)
@given(GATES)
def test_a_gate_comes_back_from_its_row(gate):
    assert LogGate.from_json(gate.to_json()) == gate


def test_a_gate_over_the_very_first_id_keeps_it():
    gate = replace(LOST, ids=(0, 0))
    assert LogGate.from_json(gate.to_json()).ids == (0, 0)


# The same


def test_gates_closed_at_different_times_may_say_the_same():
    assert LOST.is_about(replace(LOST, at=9_000))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"cause": LogGateCause.AUDIT}, id="another cause"),
        pytest.param({"t": 3_000}, id="another binding"),
        pytest.param({"t": None}, id="no binding"),
        pytest.param({"losses": (replace(LOSS, upper=9),)}, id="more is lost"),
        pytest.param({"losses": ()}, id="nothing is lost"),
        pytest.param({"reason": "other"}, id="another reason"),
        pytest.param({"captured": "d" * 64}, id="another capture"),
        pytest.param({"ids": (5, 9)}, id="other ids"),
    ],
)
def test_gates_that_say_something_else(other):
    assert not LOST.is_about(replace(LOST, **other))


# Said


def test_a_stopped_log_says_why_and_what_to_do():
    assert str(LogStopped("shop", LOST)) == (
        "shop: the log's gate is closed: records are lost: … (ids 5 to 7). Nothing was published. Put the "
        'cause right and clear the failed task, or accept it: tidemark log accept shop --reason "…"'
    )


def test_a_gate_without_ids_names_none():
    error = LogStopped("shop", replace(LOST, ids=None))
    assert str(error).startswith(
        "shop: the log's gate is closed: records are lost: …. Nothing was published."
    )


def test_a_stopped_log_is_for_a_person():
    error = LogStopped("shop", LOST)
    assert isinstance(error, TidemarkError)
    assert (error.pipeline, error.gate, error.needs_person) == ("shop", LOST, True)
