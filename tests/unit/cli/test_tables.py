"""Tables for people: everything on them can be read as it was meant."""

from io import StringIO

import pytest
from rich.console import Console

from tidemark.cli.output.tables import status_table
from tidemark.delivery.status import FollowStatus, LogStatus, PipelineStatus, WriterStatus

pytestmark = pytest.mark.unit

UPPER = 1_763_000_000_000_000
"""2025-11-13 02:13:20 UTC."""


def given_status(**keys) -> PipelineStatus:
    defaults = {
        "pipeline": "orders",
        "log": given_log(),
        "upper": UPPER,
        "unpublished": False,
        "writers": (given_writer(),),
    }
    return PipelineStatus(**defaults | keys)


def given_log(**keys) -> LogStatus:
    defaults = {
        "end": 1_233,
        "compacted_below": 0,
        "segments": 1,
        "bytes": 700,
        "messages": 1_200,
        "gate": "open",
    }
    return LogStatus(**defaults | keys)


def given_writer(**keys) -> WriterStatus:
    defaults = {
        "name": "archive",
        "kind": "files",
        "registered": True,
        "position": 1_000,
        "lag": 233,
        "gate": "open",
        "reason": None,
    }
    return WriterStatus(**defaults | keys)


def shown(status: PipelineStatus) -> list[str]:
    """The lines a person sees, runs of blanks as one."""
    screen = StringIO()
    Console(file=screen, width=300).print(status_table(status))
    return [" ".join(line.split()) for line in screen.getvalue().splitlines()]


def test_a_pipeline_is_a_line_for_the_log_and_one_per_writer():
    assert shown(given_status())[:3] == [
        "orders log end 1,233, 1,200 messages in 1 segment, 700 B; bound until 2025-11-13 02:13:20 UTC",
        "writer kind position lag gate reason",
        "archive files 1,000 233 open",
    ]


def test_a_pipeline_that_was_never_bound_says_so():
    assert shown(given_status(upper=0))[0].endswith("bound until never")


def test_a_binding_that_waits_is_mentioned():
    assert shown(given_status(unpublished=True))[0].endswith("; a binding waits to be published")


def test_several_segments_are_plural():
    assert "in 2 segments," in shown(given_status(log=given_log(segments=2)))[0]


def test_a_writer_that_is_not_registered_says_so():
    assert shown(given_status(writers=(given_writer(registered=False),)))[2].endswith("not yet registered")


@pytest.mark.parametrize(
    "reason", ["ssl_options ['ciphers'] are unknown", "bad value [/orders] at id 5", "[red]"]
)
def test_a_reason_is_shown_as_it_is(reason):
    writer = given_writer(gate="stopped", reason=reason)
    assert shown(given_status(writers=(writer,)))[2] == f"archive files 1,000 233 stopped {reason}"


def test_an_open_gate_of_the_log_takes_no_line():
    assert shown(given_status())[1].startswith("writer kind")


@pytest.mark.parametrize("reason", ["records are lost: orders/0: …", "failed (id [3])", "[red]"])
def test_a_closed_gate_of_the_log_has_a_line_of_its_own(reason):
    log = given_log(gate="stopped", reason=reason)
    assert shown(given_status(log=log))[1:3] == [
        f"the log's gate is closed: {reason}",
        "writer kind position lag gate reason",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_500, "1.5 kB"),
        (2_000_000, "2 MB"),
        (3_210_000_000, "3.21 GB"),
    ],
)
def test_sizes_are_short(size, text):
    assert f", {text}; bound" in shown(given_status(log=given_log(bytes=size)))[0]


@pytest.mark.parametrize("size", [999_999, 999_999_999, 1_234_000_000_000])
def test_no_size_is_in_powers_of_ten(size):
    assert "e+" not in shown(given_status(log=given_log(bytes=size)))[0]


def test_a_writer_that_a_follow_leaves_out_is_a_line_with_its_error():
    follow = FollowStatus(True, "run-1", 1, 2, 0.5, 3, 40, {"archive": "there is no topic [orders]."})
    lines = shown(given_status(follow=follow))
    assert "archive is left out until the run ends: there is no topic [orders]." in lines


def test_a_first_round_of_a_follow_that_takes_long_shows_for_how_long():
    lines = shown(given_status(follow=FollowStatus(True, "run-1", UPPER, lag=40.0)))
    assert "followed since 2025-11-13 02:13:20 UTC; no round has ended yet; lag 40.0 s" in lines
