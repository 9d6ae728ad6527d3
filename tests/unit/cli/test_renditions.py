"""``tidemark renditions``: what an operator sees of renditions, does to them, and is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import EXECUTE, Ended
from tests.support.renditions_installed import ANN, RenditionInstallation

from tidemark.clock import SECOND

pytestmark = pytest.mark.unit

NOT_DONE = 'Nothing was changed. Add --execute --reason "…" to do it.'


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    """Two bindings are delivered to ``archive``; its file asks for another format since."""
    world = RenditionInstallation(tmp_path, monkeypatch)
    world.publish({"sum": 1}, {"sum": 2})
    world.publish({"sum": 3})
    world.deliver()
    world.declare(format="jsonl")
    return world


@pytest.fixture
def run(bank, capsys) -> Callable[..., Ended]:
    """Run ``tidemark`` with these arguments."""
    from tidemark.cli.main import main

    def run_command(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        return Ended(leaving.value.code, *capsys.readouterr())

    return run_command


def test_the_life_of_a_rendition_by_commands_alone(run, bank):
    # Given: a plan, which changes nothing.
    planned = run("renditions", "build", "bank", "archive")
    assert (planned.code, planned.out.splitlines()[-1]) == (0, NOT_DONE)
    assert "bank/archive: build rendition 2" in planned.out
    assert "settings: format was 'parquet' and is now 'jsonl'" in planned.out
    assert "delivers: 3 messages in 2 bindings" in planned.out
    assert bank.states == {1: "active"}

    # When: it is built, verified and handed over.
    built = run("renditions", "build", "bank", "archive", *EXECUTE)
    assert (built.code, "renditions verify bank archive 2" in built.out.splitlines()[-1]) == (0, True)
    verified = run("renditions", "verify", "bank", "archive")
    assert (verified.code, "rendition 2 compared with 1 (exact): the same" in verified.out) == (0, True)
    assert "Hand over: tidemark renditions handover bank archive 2" in verified.out
    planned = run("renditions", "handover", "bank", "archive")
    assert "verified (exact), and nothing has changed since" in planned.out
    assert run("renditions", "handover", "bank", "archive", *EXECUTE).code == 0

    # Then: readers may return, and what they have left may go.
    assert bank.states == {1: "superseded", 2: "active"}
    assert run("renditions", "rollback", "bank", "archive", *EXECUTE).code == 0
    assert run("renditions", "rollback", "bank", "archive", "2", *EXECUTE).code == 0
    retired = run("renditions", "retire", "bank", "archive", "1")
    assert "dropped for good: folder" in retired.out
    assert run("renditions", "retire", "bank", "archive", "1", *EXECUTE).code == 0
    assert bank.states == {1: "dropped", 2: "active"}
    assert not (bank.home / "archive").exists()


def test_the_list_has_state_place_times_author_reason_and_evidence(run, bank):
    run("renditions", "build", "bank", "archive", *EXECUTE)
    run("renditions", "verify", "bank", "archive", "2")
    shown = run("renditions", "bank").out
    assert "bank/archive  readable from 0 on, before" in shown
    assert ("1 *" in shown, "verified" in shown, "known" in shown) == (True, True, True)
    assert "rendition 1: in the file: format was 'parquet' and is now 'jsonl'" in shown
    one = json.loads(run("renditions", "bank", "archive", "--json").out)
    first, second = one["renditions"]
    assert (first["active"], second["state"], second["evidence"]["mode"]) == (True, "verified", "exact")
    assert second["place"].endswith("archive.r2")
    assert (second["position"], second["signed"]["who"], second["signed"]["why"]) == (2, "ann", "known")
    assert json.loads(run("renditions", "bank", "--json").out)["writers"] == [one]


def test_the_list_of_a_writer_that_was_never_delivered_to_says_so(run, bank):
    bank.declare("{name: other, kind: files, path: '${TIDEMARK_HOME}/other'}")
    assert "bank/other  nothing was delivered yet" in run("renditions", "bank").out


def test_plans_and_results_are_documents_too(run, bank):
    planned = json.loads(run("renditions", "build", "bank", "archive", "--json").out)
    assert (planned["number"], planned["executed"], planned["refused"]) == (2, False, None)
    assert planned["changes"] == [{"key": "format", "before": "parquet", "now": "jsonl"}]
    built = json.loads(run("renditions", "build", "bank", "archive", "--json", *EXECUTE).out)
    assert (built["executed"], built["position"], built["written"], built["who"]) == (True, 2, 3, "ann")
    handed = json.loads(run("renditions", "handover", "bank", "archive", "--json", *EXECUTE).out)
    assert (handed["executed"], handed["h"]) == (True, bank.output.handovers[-1].h)


def test_a_build_that_is_run_again_goes_on_with_the_same_rendition(run, bank):
    for _ in range(2):
        assert run("renditions", "build", "bank", "archive", *EXECUTE).code == 0
    assert bank.states == {1: "active", 2: "building"}


def test_a_rendition_is_delivered_to_by_its_number_whatever_the_file_says_now(run, bank):
    bank.build()
    bank.publish({"sum": 4})
    bank.declare(format="parquet")
    planned = run("renditions", "build", "bank", "archive", "2")
    assert "it is building and goes on with its own settings" in planned.out
    assert "delivers: 1 messages in 1 bindings" in planned.out
    assert run("renditions", "build", "bank", "archive", "2", *EXECUTE).code == 0
    assert (bank.opened.positions.load("archive.r2").position, bank.states) == (
        3,
        {1: "active", 2: "building"},
    )


def test_nothing_is_delivered_to_a_rendition_that_was_given_up(run, bank):
    bank.build()
    run("renditions", "abandon", "bank", "archive", "2", *EXECUTE)
    for further in ((), EXECUTE):
        ended = run("renditions", "build", "bank", "archive", "2", *further)
        assert (ended.code, "was given up or retired" in ended.err) == (1, True)


def test_a_forced_handover_needs_a_reason_too(run, bank):
    bank.build()
    ended = run("renditions", "handover", "bank", "archive", "2", "--force", "--execute")
    assert (ended.code, "say why" in ended.err) == (2, True)
    assert run("renditions", "handover", "bank", "archive", "2", "--force", *EXECUTE).code == 0
    assert bank.output.handovers[-1].is_forced


def test_a_handover_may_have_a_time_to_return_of_its_own(run, bank):
    bank.build()
    planned = run("renditions", "handover", "bank", "archive", "--soak", "3d")
    assert "rendition 1 is delivered to for another 3 days" in planned.out
    assert run("renditions", "handover", "bank", "archive", "--soak", "3d", *EXECUTE).code == 0
    assert bank.output.handovers[-1].soak == 3 * 86_400 * SECOND


def test_a_time_to_return_that_is_none_is_refused(run, bank):
    bank.build()
    ended = run("renditions", "handover", "bank", "archive", "--soak", "3 days", *EXECUTE)
    assert (ended.code, "is not a duration" in ended.err) == (2, True)
    assert bank.states == {1: "active", 2: "building"}


def test_a_rollback_delivers_first_what_the_rendition_has_missed_since_its_soak(run, bank):
    bank.build()
    bank.hand_over(2)
    bank.publish({"sum": 4})
    bank.deliver_to("archive.r2")
    planned = run("renditions", "rollback", "bank", "archive")
    assert (planned.code, "it gets first what the active rendition has and it lacks" in planned.out) == (
        0,
        True,
    )
    assert run("renditions", "rollback", "bank", "archive", *EXECUTE).code == 0
    assert bank.states == {1: "active", 2: "superseded"}
    assert bank.opened.positions.load("archive").position == 3


def test_a_handover_delivers_first_what_the_rendition_lacks(run, bank):
    bank.build()
    bank.publish({"sum": 4})
    bank.deliver_to("archive")
    planned = run("renditions", "handover", "bank", "archive")
    assert "it gets first what the active rendition has and it lacks" in planned.out
    assert run("renditions", "handover", "bank", "archive", *EXECUTE).code == 0
    assert bank.output.handovers[-1].evidence.candidate.position == 3


def test_differences_are_exit_code_1_and_refuse_a_handover(run, bank):
    bank.declare(further="transforms: [{skip: {field: sum, operator: '>', match: 1}}]")
    run("renditions", "build", "bank", "archive", *EXECUTE)
    verified = run("renditions", "verify", "bank", "archive", "2")
    assert (verified.code, "1 different (1 missing), 0 explained" in verified.out) == (1, True)
    refused = run("renditions", "handover", "bank", "archive", "2", *EXECUTE)
    assert (refused.code, "differs from the active one in 1 rows" in refused.err) == (1, True)
    assert bank.states == {1: "active", 2: "building"}


def test_abandoning(run, bank):
    bank.build()
    assert "archive.r2 stays until it is retired" in run("renditions", "abandon", "bank", "archive", "2").out
    assert run("renditions", "abandon", "bank", "archive", "2", *EXECUTE).code == 0
    again = run("renditions", "abandon", "bank", "archive", "2", *EXECUTE)
    assert (again.code, again.out.splitlines()[-1]) == (0, "Nothing was changed.")


def test_a_plan_that_is_refused_says_why_and_ends_with_1(run, bank):
    planned = run("renditions", "retire", "bank", "archive", "1")
    assert (planned.code, "Refused: bank/archive: rendition 1 is the active one" in planned.err) == (1, True)
    assert json.loads(run("renditions", "retire", "bank", "archive", "1", "--json").out)["refused"]
    executed = run("renditions", "retire", "bank", "archive", "1", *EXECUTE)
    assert (executed.code, executed.out, executed.err.count("\n")) == (1, "", 1)


BUILD = ("renditions", "build", "bank", "archive")


@pytest.mark.parametrize("action", ["build", "handover", "rollback", "abandon", "retire"])
def test_nothing_is_done_without_a_reason(run, bank, action):
    bank.build()
    if action == "rollback":
        bank.hand_over(2)
    number = {"build": (), "rollback": ()}.get(action, ("2",))
    before = bank.states
    ended = run("renditions", action, "bank", "archive", *number, "--execute")
    assert (ended.code, "say why" in ended.err, bank.states) == (2, True, before)


# Wrong input


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        pytest.param(["bnak"], 1, "Did you mean `bank`?", id="a pipeline"),
        pytest.param(["bank", "archiv"], 1, "there is: archive", id="a writer"),
        pytest.param(["build", "bank", "archive.r2"], 1, "there is: archive", id="a consumer"),
        pytest.param(["build", "bank", "archiv"], 1, "there is: archive", id="a writer to build"),
        pytest.param(["biuld", "bank", "archive"], 2, "biuld", id="a command"),
        pytest.param(["build", "bank"], 2, "WRITER", id="no writer"),
        pytest.param(["abandon", "bank", "archive"], 2, "N", id="no number"),
        pytest.param(["abandon", "bank", "archive", "0"], 2, "1", id="a number that none has"),
        pytest.param(["abandon", "bank", "archive", "two"], 2, "Invalid value", id="no number at all"),
        pytest.param(["abandon", "bank", "archive", "7"], 1, "there is no rendition 7", id="unknown"),
        pytest.param(["abandon", "bank", "archive", "1"], 1, "cannot become abandoned", id="the active one"),
        pytest.param(["retire", "bank", "archive", "7"], 1, "there is no rendition 7", id="none to retire"),
        pytest.param(["handover", "bank", "archive"], 1, "renditions build bank archive", id="nothing built"),
        pytest.param(["handover", "bank", "archive", "7"], 1, "no rendition 7", id="none to hand over to"),
        pytest.param(["rollback", "bank", "archive"], 1, "is active already", id="nothing to return to"),
        pytest.param(["verify", "bank", "archive"], 1, "renditions build bank archive", id="none to verify"),
        pytest.param(["verify", "bank", "archive", "7"], 1, "no rendition 7", id="unknown to verify"),
        pytest.param(["verify", "bank", "archive", "1"], 1, "rendition 1 ", id="the active one to verify"),
        pytest.param(["verify", "bank", "archive", "1", "--mode", "x"], 2, "exact or explained", id="a mode"),
        pytest.param(["retire", "bank", "archive", "1", "--drop"], 2, "--drop", id="an option"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence_and_changes_nothing(run, bank, command, code, said):
    ended = run("renditions", *command)
    assert (ended.code, said in ended.err) == (code, True), ended
    assert "Traceback" not in ended.err
    assert bank.states == {1: "active"}


def test_a_writer_without_an_output_is_refused_with_the_next_step(run, bank):
    bank.declare("{name: other, kind: files, path: '${TIDEMARK_HOME}/other'}")
    ended = run("renditions", "build", "bank", "other", *EXECUTE)
    assert (ended.code, "run bank.replicate" in ended.err) == (1, True)


def test_a_compacted_log_is_refused_before_anything_is_declared(run, bank):
    from tests.support.log_samples import compact

    from tidemark.log.files.parquet import LogFolder

    compact(bank.control, LogFolder("bank", str(bank.home / "log" / "bank")), 2, policy="latest")
    planned = run("renditions", "build", "bank", "archive")
    assert (planned.code, "compacted below id 2" in planned.err) == (1, True)
    assert run("renditions", "build", "bank", "archive", *EXECUTE).code == 1
    assert bank.states == {1: "active"}


def test_who_built_it_is_the_one_who_was_named(run, bank):
    run("renditions", "build", "bank", "archive", *EXECUTE)
    assert bank.output.rendition(2).signed.who == ANN.who
