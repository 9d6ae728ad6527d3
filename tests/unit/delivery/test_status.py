"""The state of a pipeline, with the keys that others rely on."""

import json

import pytest
from tests.support.log_samples import add_binding, given_binding

from tidemark.clock import wall_clock
from tidemark.consensus.lease import Lease
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.delivery.status import read_status, summarize
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.followed import TERM, Followed, record_followed
from tidemark.log.state.registered_writers import Enrolled, ensure_enrolled
from tidemark.pipeline.model import Pipeline

pytestmark = pytest.mark.unit

PIPELINE = Pipeline.model_validate(
    {
        "name": "orders",
        "source": {"kafka": {"topics": ["orders"]}},
        "writers": [
            {"name": "cassandra", "kind": "journal"},
            {"name": "archive", "kind": "files", "path": "/archive"},
        ],
    },
    context={"TIDEMARK_HOME": "/home/tidemark"},
)
FIRST = given_binding(1_000, 0, ("orders", 0, 0, 10))
SECOND = given_binding(2_000, 10, ("orders", 0, 10, 15), run_id="run-2")
GATE = LogGate(LogGateCause.LOST, "records are lost: …", None, None, (), None, 5_000)


def given_published(consensus: MemoryConsensus) -> None:
    control = LogControl(consensus, "orders")
    add_binding(control, FIRST)
    control.replace_log(
        0, LogHead("m", "d", t=1_000, end=9, compacted_below=2, segments=1, bytes=700, count=8)
    )


def test_a_pipeline_that_never_ran(consensus):
    assert read_status(PIPELINE, consensus).to_dict() == {
        "pipeline": "orders",
        "log": {
            "end": -1,
            "compacted_below": 0,
            "segments": 0,
            "bytes": 0,
            "messages": 0,
            "gate": "open",
            "reason": None,
            "root": None,
        },
        "bindings": {"upper": 0, "unpublished": False},
        "writers": [
            {
                "name": name,
                "kind": kind,
                "registered": False,
                "position": -1,
                "lag": 0,
                "gate": "open",
                "reason": None,
                "retired": False,
                "left_out": [],
                "hint": None,
                "frontier": None,
                "differs": [],
                "renditions": [],
            }
            for name, kind in (("cassandra", "journal"), ("archive", "files"))
        ],
        "declared": True,
        "error": None,
        "warnings": [],
        "follow": {
            "followed": False,
            "holder": None,
            "since": None,
            "last_round": None,
            "lag": None,
            "rounds": 0,
            "records": 0,
            "needs_person": {},
        },
    }


def given_followed(consensus: MemoryConsensus, deadline: int) -> None:
    state = Followed("orders.follow run-1", 5_000, deadline, 7_000, 0.8, rounds=3, records=40)
    record_followed(consensus, "orders", state)


def test_a_pipeline_that_is_followed_shows_since_when_and_its_lag(consensus):
    given_followed(consensus, wall_clock() + TERM)
    found = read_status(PIPELINE, consensus).to_dict()["follow"]
    assert (found["followed"], found["since"], found["last_round"]) == (True, 5_000, 7_000)
    assert (found["lag"], found["rounds"], found["records"]) == (0.8, 3, 40)


def test_a_first_round_that_takes_long_shows_for_how_long(consensus):
    state = Followed("orders.follow run-1", 5_000, wall_clock() + TERM, lag=40.0)
    record_followed(consensus, "orders", state)
    assert read_status(PIPELINE, consensus).follow.lag == 40.0


def test_a_writer_that_the_run_leaves_out_is_shown_with_its_error(consensus):
    state = Followed("orders.follow run-1", 5_000, wall_clock() + TERM, 7_000, needs_person={"archive": "no"})
    record_followed(consensus, "orders", state)
    assert read_status(PIPELINE, consensus).follow.needs_person == {"archive": "no"}


def test_a_follow_that_was_killed_is_shown_as_none_after_its_deadline(consensus):
    given_followed(consensus, wall_clock() - 1)
    found = read_status(PIPELINE, consensus).to_dict()["follow"]
    assert (found["followed"], found["lag"], found["holder"]) == (False, None, "orders.follow run-1")


def test_the_keys_that_others_rely_on_are_there(consensus):
    status = read_status(PIPELINE, consensus).to_dict()
    assert {"pipeline", "log", "bindings", "writers"} <= set(status)
    assert {"end", "compacted_below", "segments", "bytes", "gate"} <= set(status["log"])
    assert {"upper"} <= set(status["bindings"])
    assert all({"name", "position", "lag", "gate", "reason"} <= set(writer) for writer in status["writers"])


def test_the_status_is_json(consensus):
    given_published(consensus)
    status = read_status(PIPELINE, consensus).to_dict()
    assert json.loads(json.dumps(status)) == status


def test_the_log_is_what_is_published(consensus):
    given_published(consensus)
    log = read_status(PIPELINE, consensus).to_dict()["log"]
    assert log == {
        "end": 9,
        "compacted_below": 2,
        "segments": 1,
        "bytes": 700,
        "messages": 8,
        "gate": "open",
        "reason": None,
        "root": None,
    }


def test_a_log_whose_gate_is_closed_says_why(consensus):
    given_published(consensus)
    LogControl(consensus, "orders").close_gate(GATE)
    log = read_status(PIPELINE, consensus).to_dict()["log"]
    assert (log["gate"], log["reason"], log["end"]) == ("stopped", "records are lost: …", 9)


def test_a_log_whose_gate_was_opened_again_is_open(consensus):
    given_published(consensus)
    LogControl(consensus, "orders").close_gate(GATE)
    LogControl(consensus, "orders").open_gate(GATE)
    log = read_status(PIPELINE, consensus).to_dict()["log"]
    assert (log["gate"], log["reason"]) == ("open", None)


def test_the_log_s_gate_is_not_the_writers_gate(consensus):
    LogControl(consensus, "orders").close_gate(GATE)
    assert [writer.gate for writer in read_status(PIPELINE, consensus).writers] == ["open", "open"]


def test_upper_is_the_first_time_not_yet_bound(consensus):
    given_published(consensus)
    assert read_status(PIPELINE, consensus).upper == 1_001


def test_a_binding_that_waits_to_be_published_is_seen(consensus):
    given_published(consensus)
    add_binding(LogControl(consensus, "orders"), SECOND)
    status = read_status(PIPELINE, consensus)
    assert (status.unpublished, status.log.end) == (True, 9)


def test_nothing_waits_when_everything_is_published(consensus):
    given_published(consensus)
    assert read_status(PIPELINE, consensus).unpublished is False


def test_lag_is_what_a_writer_has_not_finished(consensus):
    given_published(consensus)
    positions = Positions(consensus, "orders")
    positions.commit(positions.register("archive", {}), 6, None)
    archive = read_status(PIPELINE, consensus).writers[1]
    assert (archive.registered, archive.position, archive.lag) == (True, 6, 3)


def test_a_writer_at_the_end_has_no_lag(consensus):
    given_published(consensus)
    positions = Positions(consensus, "orders")
    positions.commit(positions.register("archive", {}), 9, None)
    assert read_status(PIPELINE, consensus).writers[1].lag == 0


def test_a_writer_that_is_not_registered_lags_by_the_whole_log(consensus):
    given_published(consensus)
    assert read_status(PIPELINE, consensus).writers[0].lag == 10


def test_a_stopped_writer_says_why(consensus):
    positions = Positions(consensus, "orders")
    gate = WriterGate(Cause.MESSAGE, 5, 5, 9, "id 5 cannot be read", at=1)
    positions.commit(positions.register("archive", {}), 4, None, gate)
    archive = read_status(PIPELINE, consensus).writers[1]
    assert (archive.gate, archive.reason) == ("stopped", "id 5 cannot be read")


def test_a_writer_that_is_leased_is_open(consensus):
    positions = Positions(consensus, "orders")
    positions.lend(positions.register("archive", {}), Lease("run", 1, 10**15))
    assert read_status(PIPELINE, consensus).writers[1].gate == "open"


def test_reading_the_status_changes_nothing(consensus):
    read_status(PIPELINE, consensus)
    assert LogControl(consensus, "orders").bindings_head().version == 0
    assert Positions(consensus, "orders").load("archive") is None


def test_a_run_is_summed_up_over_its_writers():
    journal = {"written": 7, "filtered": 1, "ignored": 2, "position": 9, "events": 8, "entities": 3}
    archive = {"written": 4, "filtered": 0, "ignored": 0, "position": 5}
    delivered = {"end": 9, "writers": {"cassandra": journal | {"duplicates": 1}, "archive": archive}}
    delivered["engine"] = engine = {"kind": "connect", "address": "sc://localhost:15002", "waited": 0.5}
    assert summarize(delivered, 12.34) == {
        "engine": engine,
        "records": 10,
        "events": 8,
        "entities": 3,
        "duplicates": 1,
        "left_out": 0,
        "positions": {"cassandra": 9, "archive": 5},
        "lag": {"cassandra": 0, "archive": 4},
        "seconds": 12.3,
    }


def test_a_writer_that_the_file_does_not_have_any_more_is_shown_as_long_as_the_log_waits_for_it(consensus):
    given_published(consensus)
    control, positions = LogControl(consensus, "orders"), Positions(consensus, "orders")
    for name in ("archive", "old"):
        ensure_enrolled(control, Enrolled(name, 0))
    positions.register("old", {"kind": "kafka"}, 4)
    found = {
        one.name: (one.kind, one.position, one.retired) for one in read_status(PIPELINE, consensus).writers
    }
    assert found == {
        "cassandra": ("journal", -1, False),
        "archive": ("files", -1, False),
        "old": ("kafka", 4, True),
    }


def test_i16_a_writer_that_a_compacted_log_refuses_says_why(consensus):
    """Item 16: it was shown as open, with no reason."""
    given_published(consensus)
    journal, archive = read_status(PIPELINE, consensus).writers
    assert (archive.registered, archive.gate) == (False, "stopped")
    assert "compacted below id 2" in (archive.reason or "")
    assert "`start: latest`" in (archive.reason or "")
    assert (journal.gate, journal.reason) == ("open", None)  # a journal may be rebuilt from what is left


def test_i16_a_writer_that_runs_already_is_not_refused(consensus):
    given_published(consensus)
    Positions(consensus, "orders").register("archive", {}, 9)
    archive = read_status(PIPELINE, consensus).writers[1]
    assert (archive.gate, archive.reason) == ("open", None)
