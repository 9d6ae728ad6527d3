"""Handovers, returns and the frontier."""

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
    open_at,
    proposal,
    sides,
    signed,
)

from tidemark.outputs.errors import (
    OutputDamaged,
    ReasonMissing,
    Tainted,
    TransitionRefused,
    UnknownRendition,
)
from tidemark.outputs.model.handover import (
    AlreadyActive,
    ConsumerStanding,
    EvidenceOutdated,
    GateNotOpen,
    HandoverOutOfRange,
    NotActive,
    NothingReadable,
    NotVerified,
    advance_frontier,
    hand_over,
    roll_back,
)
from tidemark.outputs.model.lifecycle import abandon, begin_retire, declare, mark_tainted, mark_verified
from tidemark.outputs.model.output import ActiveInterval, Handover
from tidemark.outputs.model.rendition import RenditionState, Signature
from tidemark.outputs.reader_errors import Forgotten, NotYet

pytestmark = pytest.mark.unit


def test_one_step_writes_the_handover_both_states_and_the_frontier():
    output = given_handed_over(h=50, upper=70)
    assert output.handovers[-1] == Handover(50, 2, OPERATOR, evidence())
    assert [one.state for one in output.renditions] == [RenditionState.SUPERSEDED, RenditionState.ACTIVE]
    assert output.frontier == 70
    assert output.intervals == (ActiveInterval(0, 50, 1), ActiveInterval(50, 70, 2))


def test_before_any_time_is_readable_a_handover_is_refused_with_the_next_step():
    for output, force in ((given_building(frontier=0), True), (given_verified(frontier=0), False)):
        with pytest.raises(NothingReadable, match=r"Run orders\.replicate first") as refusal:
            hand_over(output, 2, open_at(70), sides(), OPERATOR, force=force)
        assert (refusal.value.active, refusal.value.h) == (1, 0)


def test_the_frontier_is_the_new_rendition_s_although_the_old_one_is_ahead():
    output = advance_frontier(given_handed_over(h=50, upper=51), 2, 60)
    assert given_handed_over(h=50, upper=51).frontier == 51
    assert output.frontier == 60


def test_repeating_a_handover_changes_nothing_even_after_another_one():
    output = given_handed_over(h=50, upper=70)
    assert hand_over(output, 2, open_at(90), sides(), OPERATOR) == output
    returned = roll_back(output, 1, open_at(80), signed(5))
    assert hand_over(returned, 2, open_at(90), sides(), OPERATOR) == returned
    assert roll_back(returned, 1, open_at(99), signed(5)) == returned


def test_a_rendition_that_is_not_verified_is_refused_unless_forced():
    output = given_building()
    with pytest.raises(NotVerified) as refusal:
        hand_over(output, 2, open_at(70), sides(), OPERATOR)
    assert refusal.value.state == "building"
    forced = hand_over(output, 2, open_at(70), sides(), OPERATOR, force=True)
    assert (forced.active.number, forced.handovers[-1].is_forced, forced.handovers[-1].evidence) == (
        2,
        True,
        None,
    )


def test_outdated_evidence_is_refused_unless_forced():
    output, now = given_verified(), sides(position=100)
    with pytest.raises(EvidenceOutdated) as refusal:
        hand_over(output, 2, open_at(70), now, OPERATOR)
    assert refusal.value.changed == ("position of rendition 2", "position of rendition 1")
    assert "position of rendition 2, position of rendition 1" in str(refusal.value)
    assert hand_over(output, 2, open_at(70), now, OPERATOR, force=True).active.number == 2


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("upper", "since"), [(50, 0), (49, 0), (70, 51)], ids=["at its upper", "above it", "below its since"]
)
def test_a_handover_outside_a_rendition_s_times_is_refused(upper, since, force):
    output = mark_verified(given_building(frontier=50, since=since), 2, evidence())
    with pytest.raises(HandoverOutOfRange) as refusal:
        hand_over(output, 2, open_at(upper), sides(), OPERATOR, force=force)
    assert (refusal.value.h, refusal.value.since, refusal.value.upper) == (50, since, upper)


def test_a_handover_at_the_since_of_a_rendition_is_possible():
    output = mark_verified(given_building(frontier=50, since=50), 2, evidence())
    assert hand_over(output, 2, open_at(51), sides(), OPERATOR).active.number == 2


@pytest.mark.parametrize("force", [False, True])
def test_a_closed_gate_is_refused(force):
    with pytest.raises(GateNotOpen):
        hand_over(given_verified(), 2, ConsumerStanding(70, False), sides(), OPERATOR, force=force)
    with pytest.raises(GateNotOpen):
        roll_back(given_handed_over(upper=70), 1, ConsumerStanding(90, False), signed(5))


@pytest.mark.parametrize("force", [False, True])
def test_a_tainted_rendition_is_refused(force):
    output = mark_tainted(given_verified(), 2, TAINT)
    with pytest.raises(Tainted):
        hand_over(output, 2, open_at(70), sides(), OPERATOR, force=force)
    with pytest.raises(Tainted):
        roll_back(mark_tainted(given_handed_over(), 1, TAINT), 1, open_at(90), signed(5))


@pytest.mark.parametrize("force", [False, True])
def test_an_abandoned_rendition_never_becomes_active(force):
    output = abandon(given_verified(), 2, OPERATOR)
    with pytest.raises(TransitionRefused if force else NotVerified):
        hand_over(output, 2, open_at(70), sides(), OPERATOR, force=force)


def test_a_handover_to_the_active_rendition_is_refused():
    with pytest.raises(AlreadyActive):
        hand_over(given_output(50), 1, open_at(70), sides(), signed(5))
    with pytest.raises(AlreadyActive):
        roll_back(given_handed_over(), 2, open_at(90), signed(5))


def test_a_handover_needs_a_known_rendition_and_a_reason():
    with pytest.raises(UnknownRendition):
        hand_over(given_output(50), 9, open_at(70), sides(), OPERATOR)
    for empty in (Signature("", "why", 3), Signature("ann", "", 3)):
        with pytest.raises(ReasonMissing):
            hand_over(given_verified(), 2, open_at(70), sides(), empty)
        with pytest.raises(ReasonMissing):
            roll_back(given_handed_over(), 1, open_at(90), empty)


# roll back


def test_rolling_back_is_another_handover_and_rewrites_nothing():
    output = roll_back(given_handed_over(h=50, upper=70), 1, open_at(90), signed(5))
    assert [output.resolve(t).number for t in (49, 50, 69, 70, 89)] == [1, 2, 2, 1, 1]
    assert [str(one.state) for one in output.renditions] == ["active", "superseded"]
    assert roll_back(output, 2, open_at(95), signed(6)).intervals[-1] == ActiveInterval(90, 95, 2)


def test_rolling_back_to_a_rendition_that_was_not_delivered_to_is_refused():
    with pytest.raises(HandoverOutOfRange):
        roll_back(given_handed_over(h=50, upper=70), 1, open_at(70), signed(5))


def test_only_a_superseded_rendition_is_rolled_back_to():
    for output in (
        given_building(),
        begin_retire(declare(given_handed_over(), proposal(3)), 1, 50, OPERATOR),
    ):
        with pytest.raises(TransitionRefused):
            roll_back(output, output.renditions[-1].number, open_at(99), signed(5))
    with pytest.raises(TransitionRefused):
        roll_back(begin_retire(given_handed_over(), 1, 50, OPERATOR), 1, open_at(99), signed(5))


def test_after_a_return_the_end_of_a_rendition_s_use_is_the_later_one():
    output = roll_back(given_handed_over(h=50, upper=70), 1, open_at(90), signed(5))
    output = roll_back(output, 2, open_at(95), signed(6))
    assert (output.end_of_use(1), output.end_of_use(2), output.end_of_use(7)) == (90, 95, None)


# the frontier


def test_the_frontier_goes_to_the_active_rendition_s_upper_and_never_back():
    output = advance_frontier(given_output(50), 1, 60)
    assert output.frontier == 60
    assert advance_frontier(output, 1, 55) == output


def test_another_rendition_moves_no_frontier():
    with pytest.raises(NotActive) as refusal:
        advance_frontier(given_handed_over(upper=70), 1, 90)
    assert (refusal.value.number, refusal.value.active) == (1, 2)


def test_resolving_is_possible_from_since_to_the_frontier_only():
    output = given_output(frontier=50, since=10)
    assert (output.resolve(10).number, output.resolve(49).number) == (1, 1)
    with pytest.raises(Forgotten) as refusal:
        output.resolve(9)
    assert (refusal.value.t, refusal.value.since) == (9, 10)
    with pytest.raises(NotYet):
        output.resolve(50)


# values that contradict themselves


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"handovers": ()}, "no handover"),
        ({"next_number": 2}, "numbers of its renditions"),
        ({"renditions": given_handed_over().renditions[:1]}, "do not exist"),
        ({"frontier": 50}, "its frontier is 50"),
        ({"handovers": given_handed_over().handovers[::-1]}, "the times of its handovers"),
        ({"handovers": given_handed_over().handovers[:1]}, "newest handover is superseded"),
        ({"renditions": given_handed_over().renditions[::-1]}, "numbers of its renditions"),
    ],
)
def test_an_output_that_contradicts_itself_cannot_be_made(change, problem):
    with pytest.raises(OutputDamaged, match=problem):
        replace(given_handed_over(), **change)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"state": RenditionState.ACTIVE}, "are active"),
        ({"place": "accounts_r2"}, "one place"),
        ({"state": RenditionState.TAINTED}, "nothing says why"),
    ],
)
def test_two_active_renditions_one_place_or_an_unexplained_taint_cannot_be_made(change, problem):
    output = given_handed_over()
    with pytest.raises(OutputDamaged, match=problem):
        output.with_rendition(replace(output.rendition(1), **change))
