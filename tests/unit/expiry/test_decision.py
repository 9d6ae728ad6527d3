"""Who is purged, and who is left alone."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.expiry.decision import PURGE, ExpiryDecision, LeftAlone, Newer, judge, newer_of
from tidemark.journal.action import Action, Append, Delete, Mark, Purge
from tidemark.journal.head import Head

pytestmark = pytest.mark.unit

DAY = date(2026, 11, 17)
HEAD = Head(55, 0, 10, 10_000, 7, None, 0, 0, 86_400_000_000_000, DAY)


def newer(why: LeftAlone = LeftAlone.APPEND, offset: int = 11, partition: int = 0) -> Newer:
    return Newer(why, partition, offset)


@pytest.mark.parametrize(
    ("head", "found", "why"),
    [
        pytest.param(HEAD, [], None, id="nothing newer"),
        pytest.param(None, [], LeftAlone.GONE, id="purged meanwhile"),
        pytest.param(None, [newer()], LeftAlone.GONE, id="purged, and begun anew"),
        pytest.param(HEAD._replace(expire_on=None), [], LeftAlone.NO_EXPIRY, id="an append took it away"),
        pytest.param(HEAD._replace(expire_on=date(2026, 11, 18)), [], LeftAlone.OTHER_DAY, id="extended"),
        pytest.param(HEAD, [newer()], LeftAlone.APPEND, id="an append"),
        pytest.param(HEAD, [newer(LeftAlone.DELETE)], LeftAlone.DELETE, id="a delete"),
        pytest.param(HEAD, [newer(LeftAlone.PURGE)], LeftAlone.PURGE, id="a purge"),
        pytest.param(HEAD, [newer(LeftAlone.UNREADABLE)], LeftAlone.UNREADABLE, id="it cannot be read"),
        pytest.param(HEAD, [newer(offset=10)], None, id="what the head was made of"),
        pytest.param(HEAD, [newer(offset=9), newer(offset=12)], LeftAlone.APPEND, id="known, and not known"),
        pytest.param(HEAD, [newer(offset=3, partition=1)], LeftAlone.APPEND, id="in another partition"),
    ],
)
def test_what_becomes_of_an_entity(head: Head | None, found: list[Newer], why: LeftAlone | None) -> None:
    verdict = judge(DAY, head, found)
    assert verdict.left_alone is why
    assert verdict.is_purge is (why is None)


def test_the_verdict_names_the_message() -> None:
    found = Newer(LeftAlone.APPEND, 0, 12, 4711, "shop-1")
    assert judge(DAY, HEAD, [newer(offset=5), found]) == ExpiryDecision(LeftAlone.APPEND, found)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Append("k", 1, 1, 2, "json", b"{}", "o"), LeftAlone.APPEND),
        (Delete("k", 1, 1, "o"), LeftAlone.DELETE),
        (Purge("k", 1, "o"), LeftAlone.PURGE),
    ],
)
def test_actions_that_count(action: Action, why: LeftAlone) -> None:
    assert newer_of(action, 3, 9, 27) == Newer(why, 3, 9, 27, "o")


@pytest.mark.parametrize("action", [Mark("k", 1, "m"), None])
def test_marks_and_what_is_no_action_do_not_count(action: Action | None) -> None:
    assert newer_of(action, 0, 1) is None


@given(
    st.lists(st.builds(Newer, st.sampled_from(LeftAlone), st.integers(0, 2), st.integers(0, 20)), max_size=6)
)
def test_nothing_is_purged_that_has_news(found: list[Newer]) -> None:
    has_news = any(one.partition != HEAD.partition or one.offset > HEAD.offset for one in found)
    assert (judge(DAY, HEAD, found) == PURGE) is not has_news
