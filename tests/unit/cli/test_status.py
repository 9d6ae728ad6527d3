"""``tidemark status``: one pipeline's trouble is one line, and those without a file are shown (13, 15)."""

import json

import pytest

from tidemark.consensus.objects import Change, ObjectKey, ObjectKind
from tidemark.delivery.state.positions import Positions
from tidemark.log.state.control import LogControl
from tidemark.log.state.forgotten import Forgetting, begin_forgetting

pytestmark = pytest.mark.unit

REFUNDS = """
name: refunds
source: {kafka: {topics: [refunded], connection: kafka_elsewhere}}
writers: [{name: archive, kind: files, path: "${TIDEMARK_HOME}/refunds"}]
"""
UNKNOWN = "refunds: Connection kafka_elsewhere: is not known here."


@pytest.fixture
def consensus(control):
    """What the commands find; ``orders`` has one writer."""
    positions = Positions(control._consensus, "orders")
    positions.register("archive", {"kind": "files"}, 4)
    return control._consensus


def by_name(ended):
    return {one["pipeline"]: one for one in json.loads(ended.out)}


def test_i15_a_pipeline_with_an_unknown_connection_is_one_line_and_hides_no_other(
    run, installation, consensus
):
    (installation / "include/pipelines/refunds.yaml").write_text(REFUNDS)
    ended = run("status")
    assert ended.code == 1
    assert "orders  log end -1" in ended.out
    assert ended.err.startswith(UNKNOWN)
    assert ended.err.count("\n") == 1


def test_i15_the_trouble_is_in_the_json_beside_the_state(run, installation, consensus):
    (installation / "include/pipelines/refunds.yaml").write_text(REFUNDS)
    ended = run("status", "--json")
    shown = by_name(ended)
    assert (ended.code, ended.err) == (1, "")
    assert (shown["orders"]["error"], shown["orders"]["declared"]) == (None, True)
    assert shown["refunds"]["error"].startswith("Connection kafka_elsewhere")
    assert shown["refunds"]["log"]["end"] == -1


def test_i15_a_pipeline_asked_for_by_name_shows_its_state_and_its_trouble(run, installation, consensus):
    (installation / "include/pipelines/refunds.yaml").write_text(REFUNDS)
    ended = run("status", "refunds")
    assert ended.code == 1
    assert "refunds  log end -1" in ended.out
    assert ended.err.startswith(UNKNOWN)


def test_i15_a_state_that_cannot_be_read_is_one_line_too(run, installation, consensus):
    (installation / "include/pipelines/sound.yaml").write_text(
        REFUNDS.replace("refunds", "sound").replace(", connection: kafka_elsewhere", "")
    )
    key = ObjectKey(ObjectKind.WRITER, "orders/archive")
    consensus.commit(key, 1, Change({"head": '{"position": 3}'}))

    ended = run("status")

    assert ended.code == 1
    assert "sound  log end -1" in ended.out
    assert ended.err.startswith("orders: its state cannot be read (KeyError: 'shape').")
    assert ended.err.count("\n") == 1


def test_i15_a_refused_file_is_one_line_with_the_state_of_its_pipeline(run, installation, consensus):
    (installation / "include/pipelines/orders.yaml").write_text("name: orders\nsauce: {}\n")
    ended = run("status")
    assert ended.code == 1
    assert "orders  log end -1" in ended.out
    assert "archive (retired)" in ended.out
    assert f"orders: {installation}/include/pipelines/orders.yaml:" in ended.err
    assert ended.err.count("\n") == 1
    assert by_name(run("status", "--json"))["orders"]["declared"] is True


def test_i13_a_pipeline_without_a_file_is_shown_and_marked(run, installation, consensus):
    (installation / "include/pipelines/orders.yaml").unlink()
    for arguments in (["status"], ["status", "orders"]):
        ended = run(*arguments)
        assert (ended.code, ended.err) == (0, "")
        assert "orders (no file)  log end -1" in ended.out
        assert "archive (retired)" in ended.out
    assert by_name(run("status", "--json"))["orders"]["declared"] is False


def test_a_pipeline_that_nothing_knows_is_still_unknown(run, consensus):
    ended = run("status", "ordres")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("There is no pipeline `ordres`. Did you mean `orders`?")


def test_i13_a_pipeline_that_is_being_forgotten_never_looks_healthy(run, installation, consensus):
    (installation / "include/pipelines/orders.yaml").unlink()
    begin_forgetting(LogControl(consensus, "orders"), Forgetting("ann", "over", 1_000_000))

    shown = json.loads(run("status", "orders", "--json").out)

    assert shown["log"]["gate"] == "stopped"
    assert shown["log"]["reason"] == (
        "ann began to forget this pipeline at 1970-01-01 00:00:01 UTC (over), and parts of it are gone. "
        'Finish it with: tidemark pipelines forget orders --execute --reason "…"'
    )
