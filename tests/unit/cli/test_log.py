"""``tidemark log``: what a person sees of a log, how it is proved, and what accepting does."""

import json

import pytest
from tests.support.log_samples import capture, compact, given_binding, publish_all

from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.state.pins import pins
from tidemark.log.state.readers import readers

pytestmark = pytest.mark.unit

FIRST = given_binding(1_000_000, 0, ("orders", 0, 0, 3), ("refunds", 0, 0, 2))
SECOND = given_binding(2_000_000, 5, ("orders", 0, 3, 5), run_id="run-2")
VALUES = {("orders", 0): {0: b"a", 1: b"x" * 100, 2: b"\xff"}, ("refunds", 0): {0: None, 1: b"y"}}
LOST = Loss(LossKind.RETENTION, "orders", 0, 5, 9)
GATE = LogGate(LogGateCause.LOST, f"records are lost: {LOST}", None, None, (LOST,), None, 1)


@pytest.fixture
def published(control, root) -> LogFolder:
    """Two bindings, of which the second has one message and one hole."""
    folder = LogFolder("orders", str(root))
    publish_all(control, folder, {FIRST: VALUES, SECOND: {("orders", 0): {4: b"z"}}})
    return folder


def shown_ids(out: str) -> list[int]:
    return [json.loads(line)["id"] for line in out.splitlines()]


# show


def test_show_is_a_table_with_payloads_cut(run, published):
    ended = run("log", "show", "orders")
    lines = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert lines[0].split() == ["id", "sent", "from", "key", "value", "headers"]
    assert lines[2].split()[4:] == ["orders/0@1", "k", "x" * 60 + "…"]


def test_show_marks_what_is_no_text_and_what_is_null(run, published):
    lines = run("log", "show", "orders").out.splitlines()
    assert "1 bytes: /w==" in lines[3]
    assert lines[4].split()[4:] == ["refunds/0@0", "k", "–"]


def test_show_as_json_is_whole_one_message_a_line(run, published):
    messages = [json.loads(line) for line in run("log", "show", "orders", "--json").out.splitlines()]
    assert [message["value"] for message in messages] == ["a", "x" * 100, {"base64": "/w=="}, None, "y", "z"]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        pytest.param(["--from", "1", "--to", "3"], [1, 2, 3], id="by id"),
        pytest.param(["--from", "5"], [6], id="from a hole"),
        pytest.param(["--t", "2000000"], [6], id="by binding"),
        pytest.param(["--namespace", "refunds"], [3, 4], id="by namespace"),
        pytest.param(["--namespace", "refunds", "--namespace", "orders", "--to", "2"], [0, 1, 2], id="two"),
        pytest.param(["--limit", "2"], [0, 1], id="at most"),
    ],
)
def test_show_takes_a_choice(run, published, options, ids):
    assert shown_ids(run("log", "show", "orders", "--json", *options).out) == ids


def test_show_says_that_there_are_more(run, published):
    ended = run("log", "show", "orders", "--limit", "2")
    assert ended.err == "There are more: go on with --from 2, or show all with --limit 0.\n"


def test_show_of_an_empty_log_is_empty(run, control):
    assert run("log", "show", "orders", "--json") == (0, "", "")


def test_show_beyond_the_end_says_where_the_end_is(run, published):
    ended = run("log", "show", "orders", "--from", "50")
    assert (ended.code, ended.err) == (
        1,
        "orders: the log ends at id 6, so there is nothing from id 50 on.\n",
    )


def test_show_of_a_mistyped_pipeline_creates_nothing(run, installation):
    ended = run("log", "show", "ordres")
    assert ended.code == 1
    assert "ordres" in ended.err
    assert not (installation / ".tidemark").exists()


# verify


def test_verify_of_a_right_log_ends_with_0_and_explains_its_holes(run, published):
    ended = run("log", "verify", "orders")
    assert ended.code == 0
    assert "orders: 3 files, 6 messages" in ended.out
    assert "1 ids have no message" in ended.out
    assert "Everything is as it was written." in ended.out


def test_verify_names_every_file_that_is_wrong(run, published, root):
    first, second, _ = sorted((root / "files").iterdir())
    first.write_bytes(first.read_bytes()[:-1] + b"!")
    second.unlink()
    ended = run("log", "verify", "orders")
    assert ended.code == 1
    assert f"log file {first} is damaged" in ended.out
    assert f"{second} is missing" in ended.out
    assert "2 problems." in ended.out


def test_verify_as_json_has_the_same(run, published, root):
    sorted((root / "files").iterdir())[0].unlink()
    found = json.loads(run("log", "verify", "orders", "--json").out)
    assert (found["ok"], found["messages"], found["holes"], len(found["problems"])) == (False, 6, 1, 1)


def test_verify_of_a_damaged_manifest_is_one_sentence(run, published, control, root):
    (root / control.log_head().manifest).write_text("{}")
    ended = run("log", "verify", "orders")
    assert (ended.code, "is damaged" in ended.err, "Traceback" in ended.err) == (1, True, False)


# accept


def test_accept_without_execute_is_a_plan(run, control):
    control.close_gate(GATE)
    ended = run("log", "accept", "orders")
    assert ended.code == 0
    assert "lost for ever: orders/0: offsets 5 to 8 were removed before their capture" in ended.out
    assert ended.out.endswith('Nothing was changed. Add --execute --reason "…" to accept it.\n')
    assert control.log_gate() == GATE


def test_accept_opens_the_gate_and_keeps_who_and_why(run, control):
    control.close_gate(GATE)
    assert run("log", "accept", "orders", "--execute", "--reason", "known", "--by", "ann").code == 0
    (decision,) = control.decisions()
    assert (decision.who, decision.reason, control.log_gate()) == ("ann", "known", None)


@pytest.mark.parametrize("reason", [[], ["--reason", " "]], ids=["none", "blank"])
def test_accept_without_a_reason_is_refused(run, control, reason):
    control.close_gate(GATE)
    ended = run("log", "accept", "orders", "--execute", *reason)
    assert (ended.code, "--reason" in ended.err) == (2, True)
    assert control.log_gate() == GATE


def recreated(control, *topics: str) -> LogGate:
    """The gate of topics that were made again, after something of both was bound and published."""
    losses = tuple(Loss(LossKind.RECREATED, topic, 0, 3, 3, f"new {topic}") for topic in topics)
    return control.close_gate(LogGate(LogGateCause.LOST, "records are lost", None, None, losses, None, 7))


@pytest.mark.parametrize(
    ("topics", "journal"),
    [
        (
            ["orders"],
            "goes on with the other topics and leaves out the new topic orders, with counts; a journal "
            "writer with a keyspace of its own and `start: recreated` gets everything of it",
        ),
        (
            ["orders", "refunds"],
            "stops at the first message of the new topic orders, refunds, and stays stopped",
        ),
    ],
    ids=["one of two", "all"],
)
def test_item_12_the_plan_says_what_becomes_of_each_writer(run, published, control, topics, journal):
    recreated(control, *topics)
    plan = run("log", "accept", "orders")
    assert f"  writer cassandra (journal) {journal}" in plan.out
    assert "  writer archive (files) goes on, and gets what is captured from here on" in plan.out
    told = json.loads(run("log", "accept", "orders", "--json").out)["writers"]
    expected = "leaves out" if len(topics) == 1 else "stops"
    assert [(one["writer"], one["becomes"], one["topics"]) for one in told] == [
        ("cassandra", expected, topics),
        ("archive", "goes on", []),
    ]
    run("log", "accept", "orders", "--execute", "--reason", "known")
    assert [one.is_planned for one in control.accepted_losses()] == [True] * len(topics)


def test_item_12_what_was_accepted_before_plans_said_so_can_be_accepted_whole(run, published, control):
    gate = recreated(control, "orders")
    old = AcceptedLoss(gate.losses[0], None, 6, "ann", "known", 8, 7)
    control.record_losses(control.bindings_head(), [old])
    control.open_gate(gate)
    plan = run("log", "accept", "orders")
    assert plan.code == 0
    assert "accepted before, but not what becomes of the writers" in plan.out
    assert "writer cassandra (journal) goes on with the other topics" in plan.out
    assert run("log", "accept", "orders", "--execute", "--reason", "seen", "--by", "bob").code == 0
    assert [(one.who, one.is_planned) for one in control.accepted_losses()] == [("bob", True)]
    assert run("log", "accept", "orders").code == 1


def test_accept_of_an_open_gate_is_refused(run, control):
    ended = run("log", "accept", "orders", "--execute", "--reason", "known")
    assert ended.code == 1
    assert ended.err.startswith("orders: the log's gate is open, so there is nothing to accept.")


def test_accept_as_json_says_whether_it_was_done(run, control):
    control.close_gate(GATE)
    plan = json.loads(run("log", "accept", "orders", "--json").out)
    done = json.loads(run("log", "accept", "orders", "--json", "--execute", "--reason", "known").out)
    assert (plan["executed"], done["executed"], plan["gate"]["cause"]) == (False, True, "lost")


def test_status_says_why_the_gate_is_closed(run, control):
    control.close_gate(GATE)
    assert "the log's gate is closed: records are lost: orders/0" in run("status", "orders").out
    status = json.loads(run("status", "orders", "--json").out)
    assert status["log"]["gate"] == "stopped"
    assert status["log"]["reason"] == GATE.reason


def test_an_unpublished_capture_is_not_shown(run, published, control):
    capture(published, given_binding(3_000_000, 7, ("orders", 0, 5, 6)), {("orders", 0): {5: b"secret"}})
    assert "secret" not in run("log", "show", "orders").out


# Pins and sweep


def test_an_id_is_pinned_shown_and_released_with_a_reason(run, published, control):
    planned = run("log", "pin", "orders", "1")
    assert (planned.code, pins(control)) == (0, [])
    assert "Nothing was changed" in planned.out
    run("log", "pin", "orders", "1", "--execute", "--reason", "evidence", "--by", "ann")
    assert [(one.id, one.who, one.why) for one in pins(control)] == [(1, "ann", "evidence")]
    assert "id 1  ann" in run("log", "pins", "orders").out
    assert json.loads(run("log", "pins", "orders", "--json").out)[0]["id"] == 1
    assert "pinned by ann (evidence)" in run("log", "unpin", "orders", "1").out
    run("log", "unpin", "orders", "1", "--execute", "--reason", "closed")
    assert (pins(control), "no id is pinned" in run("log", "pins", "orders").out) == ([], True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["pin", "orders", "99", "--execute", "--reason", "x"], 1, "so 99 cannot be pinned"),
        (["pin", "orders", "1", "--execute"], 2, "say why"),
        (["unpin", "orders", "1", "--execute", "--reason", "x"], 1, "id 1 is not pinned"),
        (["sweep", "orders", "--execute"], 2, "say why"),
        (["sweep", "ordres"], 1, "orders"),
    ],
)
def test_a_wrong_pin_or_sweep_is_refused_in_a_sentence(run, published, control, arguments, code, said):
    before = control.log_head().version
    ended = run("log", *arguments)
    assert (ended.code, control.log_head().version) == (code, before)
    assert said in ended.err


@pytest.mark.parametrize("execute", [[], ["--execute", "--reason", "evidence"]], ids=["plan", "executed"])
@pytest.mark.parametrize(
    ("id_", "said"),
    [
        pytest.param("7", "the log has ids from 0 to 6, so 7 cannot be pinned", id="beyond the end"),
        pytest.param("5", "no message ever had this id: it is a hole, so 5 cannot be pinned", id="hole"),
        pytest.param("0", "compaction has taken its message away (the log is compacted below id 5)", id="c"),
    ],
)
def test_item_6_an_id_that_no_message_has_is_not_pinned_and_the_plan_says_so_too(
    run, published, control, id_, said, execute
):
    compact(control, published, below=5, keep=lambda id_: id_ in (1, 4))
    before = control.log_head().version
    ended = run("log", "pin", "orders", id_, *execute)
    assert (ended.code, control.log_head().version, pins(control)) == (1, before, [])
    assert said in ended.err
    assert "Nothing was changed" in ended.err


def test_a_sweep_is_shown_first_and_keeps_who_did_it(run, published, control, root):
    planned = run("log", "sweep", "orders")
    assert (planned.code, "0 files with 0 bytes go, 3 wait" in planned.out) == (0, True)
    assert not (root / "condemned.json").exists()
    done = json.loads(run("log", "sweep", "orders", "--execute", "--reason", "space", "--json").out)
    assert (done["executed"], len(done["waiting"]), done["removed"]) == (True, 3, [])
    (kept,) = control.decisions()
    assert (kept.what, kept.reason, kept.about) == ("sweep", "space", "0 files with 0 bytes")
    assert (root / "condemned.json").exists()


def test_show_and_verify_of_a_compacted_log(run, published, control):
    compact(control, published, below=5, keep=lambda id_: id_ in (1, 4))
    shown = run("log", "show", "orders", "--json")
    assert (shown_ids(shown.out), "compacted below id 5" in shown.err) == ([1, 4, 6], True)
    assert shown_ids(run("log", "show", "orders", "--t", "2000000", "--json").out) == [6]
    verified = run("log", "verify", "orders")
    assert (verified.code, "compacted below id 5: 3 ids there have no message" in verified.out) == (0, True)
    assert readers(control, 0) == []
