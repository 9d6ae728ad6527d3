"""Builds: what a plan says, which rendition is continued, and what is refused."""

import pytest
from tests.support.consensus import SteppingConsensus
from tests.support.faults import Killed, kill_at
from tests.support.log_samples import compact
from tests.support.renditions_installed import ANN, RenditionInstallation

from tidemark.app.renditions.catch_up import CatchingUp, GateClosed, NotDeliveredTo
from tidemark.app.renditions.neighbours import PlaceShared
from tidemark.app.renditions.next_rendition import NextRendition
from tidemark.faults import FaultPoint
from tidemark.log.files.parquet import LogFolder
from tidemark.outputs.errors import ReasonMissing, SettingsUsedBefore
from tidemark.outputs.model.building import NotBuildable
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.state.lifecycle import abandon

pytestmark = pytest.mark.unit

BOB = Signature("bob", "another reason", 2)


def files(bank: RenditionInstallation, folder: str) -> list[str]:
    return sorted(path.name for path in (bank.home / folder).glob("*.*"))


def test_a_plan_says_what_differs_where_it_is_built_and_how_much_there_is(bank):
    bank.declare(format="jsonl")
    plan = NextRendition(bank.renditions()).plan()
    assert (plan.number, plan.refused, plan.details["continues"]) == (2, None, False)
    assert plan.details["changes"] == [{"key": "format", "before": "parquet", "now": "jsonl"}]
    assert plan.details["place"].endswith("/archive.r2")
    assert (plan.details["messages"], plan.details["bindings"]) == (3, 2)
    assert any("readers stay with rendition 1" in line for line in plan.lines)
    assert bank.states == {1: "active"}


def test_a_build_with_the_same_settings_is_allowed_by_hand(bank):
    plan = NextRendition(bank.renditions()).plan()
    assert plan.refused is None
    assert "settings: those of the active rendition 1, so its rows should be the same" in plan.lines
    assert bank.build().number == 2


def test_a_build_delivers_everything_beside_the_rendition_that_readers_use(bank):
    bank.declare(format="jsonl")
    assert bank.build().number == 2
    assert bank.states == {1: "active", 2: "building"}
    assert len(files(bank, "archive.r2")) == len(files(bank, "archive")) == 2
    assert bank.opened.positions.load("archive.r2").position == 2


def test_a_second_build_goes_on_with_the_same_rendition(bank):
    bank.declare(format="jsonl")
    assert NextRendition(bank.renditions()).register(ANN).number == 2
    plan = NextRendition(bank.renditions()).plan()
    assert (plan.number, plan.details["continues"]) == (2, True)
    assert bank.build(signed=BOB).number == 2
    assert bank.output.rendition(2).signed == ANN


def test_two_builds_at_once_make_one_rendition(bank):
    bank.declare(format="jsonl")
    one, other = NextRendition(bank.renditions()), NextRendition(bank.renditions())
    one.plan(), other.plan()
    assert [one.register(ANN).number, other.register(BOB).number] == [2, 2]


def test_a_build_against_settings_that_changed_again_makes_another_one(bank):
    bank.declare(format="jsonl")
    bank.build()
    bank.declare(format="jsonl", further="namespaces: acc")
    plan = NextRendition(bank.renditions()).plan()
    assert (plan.number, plan.details["continues"]) == (3, False)
    assert any("renditions abandon bank archive 2" in line for line in plan.lines)


def test_a_column_type_that_changes_under_a_building_rendition_makes_another_one(bank):
    accounts = "{name: accounts, kind: collection, envelope: upsert, key: {id: text}, columns: {owner: %s}}"
    bank.declare(accounts % "text")
    of = bank.renditions("accounts")
    of.store.create(RenditionProposal(of.settings_now(), "collections.accounts", 0, ANN))
    bank.declare(accounts % "blob")
    building = NextRendition(bank.renditions("accounts")).register(BOB)
    bank.declare(accounts % "inet")
    plan = NextRendition(bank.renditions("accounts")).plan()
    assert (plan.number, plan.details["continues"]) == (3, False)
    assert bank.renditions("accounts").output.rendition(2) == building
    assert building.settings["writer"]["columns"] == [["owner", "blob"]]


@pytest.mark.parametrize("request_", range(1, 25))
def test_a_build_and_one_of_settings_that_changed_again_at_once_make_one_rendition_each(
    tmp_path, monkeypatch, request_
):
    consensus = SteppingConsensus()
    bank = RenditionInstallation(tmp_path, monkeypatch, consensus)
    bank.publish({"sum": 1})
    bank.deliver()
    bank.declare(format="jsonl")
    one, made = NextRendition(bank.renditions()), {}

    def change_again() -> None:
        bank.declare(format="jsonl", further="namespaces: acc")
        made["again"] = NextRendition(bank.renditions()).register(BOB)

    consensus.step_in(request_, change_again)
    made["first"] = one.register(ANN)
    consensus.step_in_at_last()
    assert sorted(one.number for one in made.values()) == [2, 3]
    chosen = {which: one.settings["writer"].get("namespaces") for which, one in made.items()}
    assert chosen == {"first": None, "again": "acc"}
    assert {one.number: one for one in bank.output.renditions[1:]} == {
        one.number: one for one in made.values()
    }
    assert len({one.place for one in bank.output.renditions}) == 3


def test_an_abandoned_rendition_is_not_continued(bank):
    bank.declare(format="jsonl")
    bank.build()
    abandon(bank.renditions().store, 2, BOB)
    assert bank.build(signed=BOB).number == 3


@pytest.mark.parametrize("point", [FaultPoint.RENDITION_DECLARED, FaultPoint.DELIVER_COMMITTED])
def test_a_build_that_was_killed_goes_on_with_the_same_rendition(bank, monkeypatch, point):
    bank.declare(format="jsonl")
    reached = kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        bank.build()
    assert reached
    assert bank.build(signed=BOB).number == 2
    assert len(files(bank, "archive.r2")) == 2


def test_acknowledged_ids_of_other_renditions_are_listed_and_not_inherited(bank):
    bank.acknowledge("archive", 2)
    plan = NextRendition(bank.renditions()).plan()
    assert plan.details["acknowledged"] == {"1": [2]}
    assert any("acknowledged for rendition 1: id 2" in line for line in plan.lines)


# Refused


def test_a_build_needs_an_author_and_a_reason(bank):
    with pytest.raises(ReasonMissing, match="build"):
        NextRendition(bank.renditions()).register(Signature("ann", " ", 1))
    assert bank.states == {1: "active"}


def test_a_compacted_log_that_lacks_messages_is_refused_with_the_reason(bank):
    compact(bank.control, LogFolder("bank", str(bank.home / "log" / "bank")), 2, policy="latest")
    plan = NextRendition(bank.renditions()).plan()
    assert isinstance(plan.refused, NotBuildable)
    with pytest.raises(NotBuildable, match="compacted below id 2"):
        NextRendition(bank.renditions()).register(ANN)
    assert bank.states == {1: "active"}


def test_an_automatic_build_never_returns_to_settings_that_a_rendition_had(bank):
    bank.declare(format="jsonl")
    bank.build()
    bank.hand_over(2)
    bank.declare(format="parquet")
    assert isinstance(NextRendition(bank.renditions(), is_automatic=True).plan().refused, SettingsUsedBefore)
    with pytest.raises(SettingsUsedBefore, match="rendition 1"):
        NextRendition(bank.renditions(), is_automatic=True).register(BOB)
    assert NextRendition(bank.renditions()).register(BOB).number == 3


def test_a_place_inside_another_ones_place_is_refused(bank):
    bank.declare("{name: archive, kind: files, path: '${TIDEMARK_HOME}/archive/inner'}")
    with pytest.raises(PlaceShared, match=r"archive/inner\.r2.*bank/archive, rendition 1"):
        NextRendition(bank.renditions()).register(ANN)


def test_a_gate_that_closes_during_a_build_stops_that_rendition_alone(bank):
    bank.declare(further="transforms: [{pick: {fields: [sum]}}]")
    bank.publish(None, "no object")
    bank.deliver()
    with pytest.raises(GateClosed, match=r"gate of rendition 2 is closed.*gate show bank archive\.r2"):
        bank.build()
    assert bank.states == {1: "active", 2: "building"}


def test_nothing_is_built_of_a_rendition_that_was_given_up_meanwhile(bank):
    bank.build()
    abandon(bank.renditions().store, 2, BOB)
    bank.publish({"sum": 9})
    with pytest.raises(NotDeliveredTo, match="given up or retired"):
        CatchingUp(bank.renditions(), 2).carry_out("a build")
