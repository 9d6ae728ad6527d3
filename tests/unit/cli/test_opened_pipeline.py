"""``tidemark offsets``, ``gate`` and ``resume``: what a person sees of writers and does to them."""

import json
from dataclasses import asdict, replace

import pytest
from tests.support.command_line import EXECUTE, given_failures

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, LeftOut, OffsetEntry, OffsetEntryKind
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit


# Looking


def test_gate_show_says_what_is_wrong_and_what_to_do(run, positions):
    ended = run("gate", "show", "orders")
    assert (ended.code, ended.err) == (0, "")
    assert "orders/cassandra: open" in ended.out
    assert "orders/archive: stopped at ids 3 to 5 (target): OSError: no space left" in ended.out
    assert "tidemark resume orders archive" in ended.out


def test_gate_show_as_json(run, positions):
    shown = json.loads(run("gate", "show", "orders", "archive", "--json").out)
    assert (shown["gate"], shown["cause"], shown["through"]) == ("stopped", "target", 5)


def test_offsets_list_shows_every_writer(run, positions):
    shown = {one["name"]: one for one in json.loads(run("offsets", "list", "orders", "--json").out)}
    assert (shown["archive"]["position"], shown["archive"]["lag"], shown["archive"]["gate"]) == (
        2,
        3,
        "stopped",
    )
    assert shown["cassandra"]["registered"] is False


def test_offsets_list_of_one_writer_has_its_namespaces_and_history(run, positions):
    shown = json.loads(run("offsets", "list", "orders", "archive", "--json").out)
    assert (shown["position"], shown["namespaces"]) == (2, {"orders": 2})
    assert [(entry["kind"], entry["position"]) for entry in shown["history"]] == [("commit", 2)]


def test_offsets_list_of_one_writer_is_a_table_too(run, positions):
    ended = run("offsets", "list", "orders", "archive")
    assert (ended.code, "position 2, stopped" in ended.out, "orders.replicate run-1" in ended.out) == (
        0,
        True,
        True,
    )


LEFT = LeftOut("orders", "new", 7, 9, 3, "ann", "known", 5)


def test_item_12_what_a_writer_leaves_out_is_seen_wherever_one_looks(run, positions):
    key = ObjectKey(ObjectKind.WRITER, "orders/archive")
    row = {LEFT.row: json.dumps(asdict(LEFT))}
    positions.consensus.commit(key, positions.version("archive"), Change(row))
    said = "leaves out topic orders, which was made again: 3 messages from id 7 on (accepted by ann: known)"
    for command in (
        ["gate", "show", "orders"],
        ["offsets", "list", "orders", "archive"],
        ["status", "orders"],
    ):
        assert said in run(*command).out, command
    shown = json.loads(run("gate", "show", "orders", "--json").out)
    assert shown["archive"]["left_out"] == [asdict(LEFT)]
    status = json.loads(run("status", "orders", "--json").out)
    assert [one["left_out"] for one in status["writers"]] == [[], [asdict(LEFT)]]


@pytest.fixture
def refused(positions) -> Positions:
    """The log is compacted below 3, and ``archive`` was forgotten: it would have to begin anew."""
    positions.forget(positions.load("archive"), AuditEntry("forget", "ann", "over", 1))
    control = LogControl(positions.consensus, "orders")
    head = control.log_head()
    control.replace_log(head.version, replace(head, compacted_below=3))
    return positions


def test_i16_status_and_gate_show_say_why_a_compacted_log_refuses_a_writer(run, refused):
    """Item 16: both said nothing, and the run failed for ever."""
    for command in (("status", "orders"), ("gate", "show", "orders"), ("offsets", "list", "orders")):
        ended = run(*command)
        assert (ended.code, "refused" in ended.out) == (0, True), ended
        assert "compacted below id 3" in " ".join(ended.out.split()), ended
    shown = json.loads(run("gate", "show", "orders", "archive", "--json").out)
    assert (shown["gate"], "compacted below id 3" in shown["reason"]) == ("stopped", True)


def test_i16_offsets_list_of_a_writer_that_is_refused_agrees_with_the_list(run, refused):
    """Item 16: the list had it, and asking for it alone said that there was no such writer."""
    ended = run("offsets", "list", "orders", "archive")
    assert (ended.code, "not registered" in ended.out, "compacted below id 3" in ended.out) == (0, True, True)
    listed = {one["name"]: one for one in json.loads(run("offsets", "list", "orders", "--json").out)}
    alone = json.loads(run("offsets", "list", "orders", "archive", "--json").out)
    assert {key: alone[key] for key in listed["archive"]} == listed["archive"]


def test_i16_offsets_list_of_a_writer_that_never_ran_says_so(run, positions):
    ended = run("offsets", "list", "orders", "cassandra")
    assert (ended.code, "the first run registers it" in ended.out) == (0, True)


# Doing


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["offsets", "ack", "orders", "archive", "3"], id="ack"),
        pytest.param(["offsets", "rewind", "orders", "archive", "0"], id="rewind"),
        pytest.param(["gate", "open", "orders", "archive"], id="open"),
    ],
)
def test_a_plan_changes_nothing(run, walled, positions, command):
    before = positions.load("archive")
    ended = run(*command)
    assert (ended.code, ended.out.splitlines()[-1]) == (
        0,
        'Nothing was changed. Add --execute --reason "…" to do it.',
    )
    assert positions.load("archive") == before


@pytest.mark.parametrize(
    "command",
    [
        ["offsets", "ack", "orders", "archive", "3"],
        ["gate", "open", "orders", "archive"],
        ["offsets", "compact"],
    ],
)
def test_nothing_is_done_without_a_reason(run, walled, positions, command):
    before = positions.load("archive")
    ended = run(*command, "--execute")
    assert (ended.code, "say why" in ended.err) == (2, True)
    assert positions.load("archive") == before


def test_ack_lets_the_message_pass_and_keeps_a_copy(run, walled, positions, installation):
    assert run("offsets", "ack", "orders", "archive", "3", *EXECUTE).code == 0
    state = positions.load("archive")
    assert (state.position, state.gate is not None) == (3, True)
    letter = installation / ".tidemark" / "log" / "orders" / "dead_letters" / "archive" / f"{3:020d}.json"
    copied = json.loads(letter.read_text())
    assert (copied["message"]["value"], copied["who"], copied["reason"]) == ("d", "ann", "known")
    assert [(deed.what, deed.who, deed.reason) for deed in positions.deeds("archive")] == [
        ("acknowledge", "ann", "known")
    ]


def test_ack_of_everything_that_is_left_opens_the_gate(run, walled, positions):
    plan = json.loads(run("offsets", "ack", "orders", "archive", "3", "5", "--untried", "--json").out)
    # The last id stays open: the next delivery has to finish the binding, though nothing of it is left.
    assert (plan["ids"], plan["position"], plan["executed"]) == ([3, 5], 4, False)
    assert run("offsets", "ack", "orders", "archive", "3", "5", "--untried", *EXECUTE).code == 0
    assert (positions.load("archive").position, positions.load("archive").gate) == (4, None)


def test_rewind_is_an_entry_of_its_own(run, positions):
    assert run("offsets", "rewind", "orders", "archive", "0", *EXECUTE).code == 0
    assert positions.load("archive").position == 0
    assert [(entry.kind, entry.by, entry.reason) for entry in positions.history("archive")][-1] == (
        "rewind",
        "ann",
        "known",
    )


def test_rewind_to_the_beginning(run, positions):
    assert run("offsets", "rewind", "orders", "archive", "-1", *EXECUTE).code == 0
    assert positions.load("archive").position == -1


def test_a_misspelled_option_is_refused(run, positions):
    ended = run("offsets", "rewind", "orders", "archive", "0", "--exekute")
    assert (ended.code, positions.load("archive").position) == (2, 2)


def test_open_and_stop(run, positions):
    assert run("gate", "open", "orders", "archive", *EXECUTE).code == 0
    assert positions.load("archive").gate is None
    assert run("gate", "stop", "orders", "archive", *EXECUTE).code == 0
    assert positions.load("archive").gate.cause is Cause.HAND


@pytest.mark.parametrize("further", [(), EXECUTE], ids=["plan", "execute"])
def test_i19_stopping_a_stopped_writer_is_no_failure_and_changes_nothing(run, positions, further):
    """Item 19: the page says to stop the writer, which failed where it was stopped already."""
    before = positions.load("archive"), positions.deeds("archive")
    ended = run("gate", "stop", "orders", "archive", *further)
    assert (ended.code, ended.err, "it is stopped already, at ids 3 to 5" in ended.out) == (0, "", True)
    assert ended.out.splitlines()[-1] == "Nothing was changed."
    assert (positions.load("archive"), positions.deeds("archive")) == before
    shown = json.loads(run("gate", "stop", "orders", "archive", "--json", *further).out)
    assert shown["executed"] is False


def test_resume_delivers_what_failed_and_opens_the_gate(run, positions, archive):
    ended = run("resume", "orders", "archive")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "orders/archive: at id 5; the gate is open.")
    assert [path.name for path in archive.glob("*.parquet")] == [f"{3:020d}-{5:020d}.parquet"]


def test_resume_as_json_keeps_its_progress_out_of_the_answer(run, positions):
    answer = json.loads(run("resume", "orders", "archive", "--json").out)
    assert (answer["position"], answer["delivered"], answer["gate"]) == (5, 2, "open")


def test_a_resume_that_fails_says_where_and_how_to_go_on(run, positions, archive):
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_text("in the way")
    ended = run("resume", "orders", "archive")
    assert (ended.code, "still stopped at id 3" in ended.err) == (1, True)
    assert "mend the target (failed 2 times), then go on one message at a time" in ended.err
    assert "offsets ack" not in ended.err


# Only what has failed


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        pytest.param(["5"], "it waits for id 3", id="not the next"),
        pytest.param(["3", "4"], "ends with a message", id="a hole"),
        pytest.param(["3", "99"], "the log ends at id 5", id="no such id"),
        pytest.param(["3", "5"], "id 5 has not failed", id="never tried"),
    ],
)
def test_i05_what_may_not_pass_is_said_in_one_sentence(run, walled, ids, said):
    before = walled.load("archive")
    ended = run("offsets", "ack", "orders", "archive", *ids, *EXECUTE)
    assert (ended.code, said in ended.err) == (1, True), ended
    assert walled.load("archive") == before


def test_i05_gate_show_names_no_message_that_was_acknowledged_already(run, walled):
    run("offsets", "ack", "orders", "archive", "3", *EXECUTE)
    shown = run("gate", "show", "orders", "archive").out
    assert "stopped after id 3, which is acknowledged: ids 4 to 5 are left to be delivered" in shown
    assert ("tidemark resume orders archive" in shown, "offsets ack" in shown) == (True, False)


def test_i05_an_id_that_was_never_tried_needs_untried(run, walled):
    run("offsets", "ack", "orders", "archive", "3", *EXECUTE)
    refused = run("offsets", "ack", "orders", "archive", "5", *EXECUTE)
    assert (refused.code, "id 5 has not failed" in refused.err, "--untried" in refused.err) == (1, True, True)
    assert run("offsets", "ack", "orders", "archive", "5", "--untried", *EXECUTE).code == 0
    assert walled.acknowledged("archive") == {3, 5}


def test_i05_hints_follow_from_the_attempts(run, positions):
    given_failures(positions, 1)
    assert "offsets ack" not in run("gate", "show", "orders", "archive").out
    given_failures(positions, 2)
    assert "tidemark offsets ack orders archive 3" in run("gate", "show", "orders", "archive").out


def test_i05_gate_show_as_json_has_the_hints(run, walled):
    shown = json.loads(run("gate", "show", "orders", "archive", "--json").out)
    assert (shown["acknowledgeable"], shown["hints"][1]["command"]) == (3, "tidemark resume orders archive")


def test_i05_status_says_what_to_do_first(run, positions):
    shown = run("status", "orders").out
    assert "archive: mend the target, then go on one message at a time: tidemark resume orders" in shown
    writers = {
        one["name"]: one["hint"] for one in json.loads(run("status", "orders", "--json").out)["writers"]
    }
    assert (writers["cassandra"], "tidemark resume orders archive" in writers["archive"]) == (None, True)


def test_i05_status_does_not_blame_a_message_that_was_acknowledged(run, walled):
    run("offsets", "ack", "orders", "archive", "3", *EXECUTE)
    writers = {one["name"]: one for one in json.loads(run("status", "orders", "--json").out)["writers"]}
    assert writers["archive"]["reason"].startswith("after id 3, which is acknowledged: ids 4 to 5 are left")


def test_i20_acknowledged_ids_are_named_after_the_offset_log_was_compacted(run, walled):
    run("offsets", "ack", "orders", "archive", "3", *EXECUTE)
    run("resume", "orders", "archive")
    run("offsets", "compact", *EXECUTE)
    assert not [one for one in walled.history("archive") if one.kind is OffsetEntryKind.ACKNOWLEDGE]
    (one,) = json.loads(run("offsets", "list", "orders", "archive", "--json").out)["acknowledged"]
    assert (one["ids"], one["by"], one["reason"]) == ([3], "ann", "known")
    assert "acknowledged ids" in (shown := run("offsets", "list", "orders", "archive").out)
    assert "ann  known" in " ".join(shown.split(" "))


# Compacting


@pytest.fixture
def long(positions) -> Positions:
    """``archive`` has 6 entries, the fourth of them a rewind; another pipeline's writer has 3."""
    for state_of, name in ((positions, "archive"), (Positions(positions.consensus, "invoices"), "old")):
        state = state_of.load(name) or state_of.register(name, {})
        for position in (3, 4):
            entry = OffsetEntry(
                OffsetEntryKind.COMMIT, position, 1_000, "run-2", namespaces={"orders": position}
            )
            state = state_of.commit(state, position, entry, state.gate)
    for kind, position in (
        (OffsetEntryKind.REWIND, 1),
        (OffsetEntryKind.COMMIT, 3),
        (OffsetEntryKind.COMMIT, 4),
    ):
        state = positions.load("archive")
        positions.commit(state, position, OffsetEntry(kind, position, 1_000, "ann"), state.gate)
    return positions


def test_compact_shows_its_plan_and_changes_nothing(run, long):
    before = long.load("archive"), long.history("archive")
    ended = run("offsets", "compact", "orders")
    assert (ended.code, ended.err) == (0, "")
    first, last = ended.out.splitlines()
    assert first.startswith("orders/archive: entries 6 → 2, 1 of them rewinds; bytes ")
    assert last == 'Nothing was changed. Add --execute --reason "…" to do it.'
    assert (long.load("archive"), long.history("archive")) == before


def test_compact_leaves_the_rewind_and_the_newest_entry(run, long):
    before = long.standing("archive")
    assert run("offsets", "compact", "orders", "archive", *EXECUTE).out.splitlines()[-1] == "Done by ann."
    assert [(entry.kind.value, entry.position) for entry in long.history("archive")] == [
        ("rewind", 1),
        ("commit", 4),
    ]
    assert before.differences(long.standing("archive")) == []
    assert [(deed.what, deed.who, deed.reason) for deed in long.deeds("archive")] == [
        ("compact offsets", "ann", "known")
    ]


def test_compact_of_everything_reaches_pipelines_that_are_in_no_file(run, long):
    shown = json.loads(run("offsets", "compact", "--json", *EXECUTE).out)
    found = {f"{one['pipeline']}/{one['writer']}": one for one in shown["writers"]}
    assert {
        name: (one["rows_before"], one["rows_after"], one["executed"]) for name, one in found.items()
    } == {
        "invoices/old": (2, 1, True),
        "orders/archive": (6, 2, True),
    }
    assert (found["orders/archive"]["rewinds"], shown["who"], shown["executed"]) == (1, "ann", True)
    assert len(Positions(long.consensus, "invoices").history("old")) == 1


def test_compacting_again_finds_nothing(run, long):
    run("offsets", "compact", *EXECUTE)
    ended = run("offsets", "compact", "orders", *EXECUTE)
    assert "orders/archive: nothing to remove; entries: 2, 1 of them rewinds" in ended.out
    assert len(long.deeds("archive")) == 1


def test_compact_while_a_run_has_the_writer(run, long):
    hold = take(long, long.load("archive"), "orders.replicate run-9")
    assert run("offsets", "compact", "orders", *EXECUTE).code == 0
    hold.commit(5, {"orders": 5})
    assert long.load("archive").position == 5


def test_compact_without_any_writer_says_so(run, positions):
    state = positions.load("archive")
    positions.forget(state, AuditEntry("forget", "ann", "over", 1))
    assert run("offsets", "compact").out.splitlines()[0] == "No writer is registered."


def test_a_log_that_is_not_as_it_should_be_is_named_and_the_others_are_compacted(run, long):
    key, version = ObjectKey(ObjectKind.WRITER, "orders/archive"), long.load("archive").version
    long.consensus.commit(key, version, Change(deletes=[next(long.offset_rows("archive"))[0]]))
    ended = run("offsets", "compact", *EXECUTE)
    assert (ended.code, "it is at 4, and the newest entry of its offset log says 3" in ended.err) == (1, True)
    assert (len(long.history("archive")), len(Positions(long.consensus, "invoices").history("old"))) == (5, 1)


# Wrong input


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(["gate", "show", "ordres"], "Did you mean `orders`?", id="a pipeline"),
        pytest.param(["gate", "show", "orders", "archiv"], "there is: cassandra, archive", id="a writer"),
        pytest.param(
            ["offsets", "list", "orders", "archiv"], "no registered writer archiv", id="one to list"
        ),
        pytest.param(["offsets", "ack", "orders", "archive", "3"], "its target failed", id="the target"),
        pytest.param(
            ["offsets", "ack", "orders", "archive", "3", "--untried"], "its target failed", id="it still is"
        ),
        pytest.param(["offsets", "rewind", "orders", "archive", "2"], "from -1 to 1", id="nowhere"),
        pytest.param(["offsets", "rewind", "orders", "cassandra", "2"], "ever registered", id="never ran"),
        pytest.param(
            ["offsets", "forget", "orders", "archive"], "remove it there first", id="still declared"
        ),
        pytest.param(["gate", "open", "orders", "cassandra"], "ever registered", id="nothing to open"),
        pytest.param(
            ["offsets", "compact", "orders", "archiv"], "no registered writer archiv", id="one to compact"
        ),
        pytest.param(["offsets", "compact", "ordres"], "Did you mean `orders`?", id="some to compact"),
        pytest.param(["resume", "orders", "nobody"], "there is no such writer", id="no writer to resume"),
        pytest.param(
            ["journal", "take-over", "orders", "archive"], "only a journal's tables", id="no journal to take"
        ),
        pytest.param(["journal", "take-over", "orders", "cassandra"], "it never ran", id="none to take"),
        pytest.param(
            ["journal", "take-over", "orders", "nobody"],
            "there is no such writer",
            id="no writer to take over",
        ),
        pytest.param(
            ["journal", "hand-back", "orders", "cassandra"], "stop it first", id="nothing to hand back"
        ),
        pytest.param(["journal", "check", "orders", "archive"], "it has no journal archive", id="no journal"),
        pytest.param(["journal", "check", "ordres"], "Did you mean `orders`?", id="one to check"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence_and_creates_nothing(run, positions, command, said):
    before = {name: positions.load(name) for name in ("archive", "cassandra", "archiv", "nobody")}
    ended = run(*command)
    assert (ended.code, said in ended.err) == (1, True), ended
    assert {name: positions.load(name) for name in before} == before


def test_nothing_is_done_while_a_run_has_the_writer(run, positions):
    take(positions, positions.load("archive"), "orders.replicate run-9")
    ended = run("gate", "open", "orders", "archive", *EXECUTE)
    assert (ended.code, "orders.replicate run-9 has this writer until" in ended.err) == (1, True)
