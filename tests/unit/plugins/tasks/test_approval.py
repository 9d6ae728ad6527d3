"""The answer to a plan."""

import pytest

from tidemark_airflow.tasks.approval import is_approved, user_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("chosen", "expected"), [("Approve", True), ("Reject", False)])
def test_only_approve_approves(chosen, expected, capsys):
    answer = {"chosen_options": [chosen], "responded_by_user": {"id": "1", "name": "ann"}}
    assert is_approved("orders", answer) is expected
    assert capsys.readouterr().out == f"orders: ann: {chosen}\n"


@pytest.mark.parametrize(
    ("user", "name"), [({"name": "ann"}, "ann"), ({"id": 7}, "7"), ({}, "unknown"), (None, "unknown")]
)
def test_the_user_has_a_name_for_the_audit_trail(user, name):
    assert user_of({"responded_by_user": user}) == name
