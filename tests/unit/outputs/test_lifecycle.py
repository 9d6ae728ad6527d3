"""Renditions from their declaration to their end, apart from handovers."""

from dataclasses import replace

import pytest
from tests.support.output_samples import (
    OPERATOR,
    TAINT,
    evidence,
    given_building,
    given_handed_over,
    given_output,
    given_verified,
    proposal,
    sides,
    signed,
)

from tidemark.outputs.errors import (
    DifferencesUnexplained,
    NotCaughtUp,
    NotCompared,
    NotForgotten,
    PlaceTaken,
    ReasonMissing,
    SettingsUsedBefore,
    StillActive,
    TransitionRefused,
    UnknownRendition,
)
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.lifecycle import (
    abandon,
    begin_retire,
    declare,
    mark_dropped,
    mark_tainted,
    mark_verified,
    revoke_if_changed,
)
from tidemark.outputs.model.rendition import ALLOWED, RenditionState, Signature, settings_digest

pytestmark = pytest.mark.unit

NAMELESS = Signature("ann", " ", 1)


def states(output) -> dict[int, str]:
    return {one.number: str(one.state) for one in output.renditions}


# declare


def test_a_declared_rendition_is_built_and_readers_do_not_see_it():
    output = given_building(frontier=50)
    assert states(output) == {1: "active", 2: "building"}
    assert [output.resolve(t).number for t in (0, 49)] == [1, 1]


def test_declaring_again_after_a_lost_answer_adds_nothing():
    output = given_building()
    again = replace(proposal(2), place="accounts_r3")  # the caller derived it from the number it saw then
    assert declare(output, again) == output


def test_a_number_is_not_used_again_after_the_rendition_is_gone():
    output = abandon(given_building(), 2, OPERATOR)
    output = mark_dropped(begin_retire(output, 2, 0, OPERATOR), 2)
    assert states(declare(output, proposal(3))) == {1: "active", 2: "dropped", 3: "building"}


@pytest.mark.parametrize("place", ["accounts", "accounts_r2"])
def test_a_place_is_not_used_twice_even_after_it_was_dropped(place):
    output = mark_dropped(begin_retire(abandon(given_building(), 2, OPERATOR), 2, 0, OPERATOR), 2)
    with pytest.raises(PlaceTaken) as refusal:
        declare(output, proposal(3, place=place))
    assert refusal.value.place == place


def test_no_rebuild_starts_by_itself_to_settings_of_an_earlier_rendition():
    output = given_handed_over()
    with pytest.raises(SettingsUsedBefore) as refusal:
        declare(output, proposal(3, shards=8), is_automatic=True)
    assert refusal.value.number == 1
    assert states(declare(output, proposal(3, shards=8)))[3] == "building"
    assert states(declare(output, proposal(3), is_automatic=True))[3] == "building"


def test_other_code_is_another_output():
    assert settings_digest({"a": 1, "b": 2}, {"m": "x"}) == settings_digest({"b": 2, "a": 1}, {"m": "x"})
    assert settings_digest({"a": 1}, {"m": "x"}) != settings_digest({"a": 1}, {"m": "y"})
    assert settings_digest({"a": 1}, {}) != settings_digest({"a": 2}, {})


def test_a_declaration_needs_a_reason():
    with pytest.raises(ReasonMissing) as refusal:
        declare(given_output(), replace(proposal(2), signed=NAMELESS))
    assert (refusal.value.pipeline, refusal.value.writer) == ("orders", "accounts")


# verify


def test_clean_evidence_verifies_and_may_be_renewed():
    output = given_verified()
    assert states(output)[2] == "verified"
    later = evidence(position=120, t=60)
    assert mark_verified(output, 2, later).rendition(2).evidence == later


def test_a_rendition_behind_the_active_one_is_not_verified():
    candidate, active = sides()
    behind = replace(evidence(), candidate=replace(candidate, position=98), active=active)
    with pytest.raises(NotCaughtUp) as refusal:
        mark_verified(given_building(), 2, behind)
    assert (refusal.value.position, refusal.value.active_position) == (98, 99)


@pytest.mark.parametrize("wrong", [evidence(2, active=3), evidence(3, active=1)])
def test_evidence_about_other_renditions_proves_nothing(wrong):
    with pytest.raises(NotCompared):
        mark_verified(given_building(), 2, wrong)


@pytest.mark.parametrize(
    ("mode", "differences", "explained"),
    [(VerificationMode.EXACT, 1, 1), (VerificationMode.EXPLAINED, 3, 2)],
)
def test_a_difference_that_no_rule_explains_is_not_verified(mode, differences, explained):
    found = replace(evidence(), mode=mode, differences=differences, explained=explained)
    with pytest.raises(DifferencesUnexplained):
        mark_verified(given_building(), 2, found)


def test_explained_differences_are_verified():
    found = replace(evidence(), mode=VerificationMode.EXPLAINED, differences=3, explained=3)
    assert states(mark_verified(given_building(), 2, found))[2] == "verified"


@pytest.mark.parametrize(
    ("side", "change", "name"),
    [
        (0, {"position": 100}, "position of rendition 2"),
        (0, {"position": 98}, "position of rendition 2"),
        (1, {"position": 100}, "position of rendition 1"),
        (0, {"acknowledged": (7, 8)}, "acknowledged ids of rendition 2"),
        (1, {"acknowledged": (7,)}, "acknowledged ids of rendition 1"),
        (0, {"code": {"rules": "v3"}}, "code of rendition 2"),
        (1, {"code": {"rules": "v3"}}, "code of rendition 1"),
        (1, {"number": 3}, "rendition 3 instead of 1"),
    ],
)
def test_any_change_of_what_was_compared_revokes_the_evidence(side, change, name):
    now = [*sides()]
    now[side] = replace(now[side], **change)
    output = given_verified()
    assert output.rendition(2).evidence.changes(*now) == (name,)
    revoked = revoke_if_changed(output, 2, *now).rendition(2)
    assert (revoked.state, revoked.evidence) == (RenditionState.BUILDING, None)


def test_evidence_without_a_change_stays():
    assert revoke_if_changed(given_verified(), 2, *sides()) == given_verified()
    assert revoke_if_changed(given_building(), 2, *sides()) == given_building()


# abandon, taint


@pytest.mark.parametrize("output", [given_building(), given_verified()], ids=["building", "verified"])
def test_a_rendition_that_was_never_active_may_be_abandoned(output):
    given_up = abandon(output, 2, OPERATOR)
    assert (states(given_up)[2], given_up.rendition(2).abandoned) == ("abandoned", OPERATOR)
    assert abandon(given_up, 2, signed(9)) == given_up


@pytest.mark.parametrize("number", [1, 2])
def test_a_rendition_that_readers_know_cannot_be_abandoned(number):
    with pytest.raises(TransitionRefused) as refusal:
        abandon(given_handed_over(), number, OPERATOR)
    assert refusal.value.wanted == "abandoned"


def test_an_abandonment_needs_a_reason():
    with pytest.raises(ReasonMissing):
        abandon(given_building(), 2, NAMELESS)


@pytest.mark.parametrize(
    ("output", "number"),
    [(given_output(5), 1), (given_building(), 2), (given_verified(), 2), (given_handed_over(), 1)],
    ids=["active", "building", "verified", "superseded"],
)
def test_every_rendition_that_is_delivered_to_can_be_tainted_once(output, number):
    tainted = mark_tainted(output, number, TAINT)
    assert (states(tainted)[number], tainted.rendition(number).taint) == ("tainted", TAINT)
    assert mark_tainted(tainted, number, replace(TAINT, t=70)) == tainted
    assert tainted.frontier == output.frontier


def test_an_abandoned_rendition_is_not_delivered_to_and_cannot_be_tainted():
    with pytest.raises(TransitionRefused):
        mark_tainted(abandon(given_building(), 2, OPERATOR), 2, TAINT)


# retire


def test_the_active_rendition_is_never_retired():
    with pytest.raises(StillActive):
        begin_retire(given_handed_over(), 2, 100, OPERATOR)
    with pytest.raises(StillActive):
        begin_retire(mark_tainted(given_handed_over(), 2, TAINT), 2, 100, OPERATOR)


@pytest.mark.parametrize("state", ["building", "verified"])
def test_a_rendition_in_the_making_is_abandoned_before_it_is_retired(state):
    output = given_building() if state == "building" else given_verified()
    with pytest.raises(TransitionRefused) as refusal:
        begin_retire(output, 2, 100, OPERATOR)
    assert refusal.value.state == state


def test_a_rendition_is_not_retired_before_its_times_are_forgotten():
    with pytest.raises(NotForgotten) as refusal:
        begin_retire(given_handed_over(h=50), 1, 49, OPERATOR)
    assert (refusal.value.end, refusal.value.since) == (50, 49)


def test_retiring_can_be_repeated_and_a_dropped_place_is_recorded_once():
    retiring = begin_retire(given_handed_over(h=50), 1, 50, OPERATOR)
    assert begin_retire(retiring, 1, 50, OPERATOR) == retiring
    dropped = mark_dropped(retiring, 1)
    assert mark_dropped(dropped, 1) == dropped == begin_retire(dropped, 1, 50, OPERATOR)


def test_a_place_that_is_in_use_is_not_recorded_as_dropped():
    with pytest.raises(TransitionRefused):
        mark_dropped(given_handed_over(), 1)


def test_a_tainted_rendition_that_was_never_active_is_retired_at_once():
    output = mark_tainted(given_building(), 2, TAINT)
    assert states(begin_retire(output, 2, 0, OPERATOR))[2] == "retiring"


@pytest.mark.parametrize(
    "step",
    [
        lambda output: abandon(output, 9, OPERATOR),
        lambda output: mark_verified(output, 9, evidence(9)),
        lambda output: revoke_if_changed(output, 9, *sides(9)),
        lambda output: mark_tainted(output, 9, TAINT),
        lambda output: begin_retire(output, 9, 0, OPERATOR),
        lambda output: mark_dropped(output, 9),
    ],
    ids=["abandon", "verify", "revoke", "taint", "retire", "dropped"],
)
def test_a_number_that_does_not_exist_is_refused(step):
    with pytest.raises(UnknownRendition) as refusal:
        step(given_output())
    assert refusal.value.number == 9


def test_nothing_follows_a_dropped_rendition_and_everything_else_can_end():
    assert ALLOWED[RenditionState.DROPPED] == frozenset()
    reached = {RenditionState.BUILDING}
    for _ in RenditionState:
        reached |= {after for state in reached for after in ALLOWED[state]}
    assert reached == set(RenditionState)
