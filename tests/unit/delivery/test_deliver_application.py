"""The application ``deliver``: a run that did not deliver is not told as one that did."""

import runpy
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from tidemark.app.build import BuildStopped, NotDelivered
from tidemark.app.shutdown import AskedToStop
from tidemark.consensus.lease import Lease
from tidemark.delivery.deliver import Delivered
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.log.state.followed import Followed
from tidemark.settings import ROOT

pytestmark = pytest.mark.unit


@pytest.fixture
def application() -> dict[str, Any]:
    """The application, with a log and a control plane that answer anything."""
    inside: dict[str, Any] = runpy.run_path(str(ROOT / "spark_apps" / "deliver.py"))["main"].__globals__
    inside |= {"connect": MagicMock(), "LightweightConsensus": MagicMock(), "pipeline_suite": MagicMock()}
    log = SimpleNamespace(end=9)
    opened = SimpleNamespace(held=lambda holder: nullcontext(log))
    inside["PublishedLog"] = SimpleNamespace(open=lambda control, path: opened)
    inside["Positions"] = lambda consensus, pipeline: SimpleNamespace(load=lambda name: None)
    return inside


def given_job(is_again: bool = False, consumer: str = "") -> Any:
    limits = SimpleNamespace(max_records_in_process=10, max_records_per_run=10)
    declared = SimpleNamespace(name="archive")
    pipeline = SimpleNamespace(
        name="orders", writers=[declared], limits=limits, log=SimpleNamespace(path="/log")
    )
    arguments = SimpleNamespace(
        holder="orders.replicate run",
        from_t="",
        to_t="9" if is_again else "",
        verify="sample",
        consumer=consumer,
        until_caught_up=False,
    )
    connections = SimpleNamespace(control=None, spark=SimpleNamespace(is_connect=True))
    return SimpleNamespace(pipeline=pipeline, arguments=arguments, connections=connections)


def run(
    application: dict[str, Any],
    deliver: Callable[..., Delivered],
    *,
    stops: bool = False,
    again: bool = False,
    consumer: str = "",
) -> Any:
    """Run it for one writer."""

    @contextmanager
    def stop_requested() -> Any:
        yield lambda: stops

    active = SimpleNamespace(
        name="archive", shown="archive", is_active=True, built=True, writer=SimpleNamespace(name="archive")
    )
    beside = SimpleNamespace(
        name="archive.r2", shown="archive.r2", is_active=False, built=True, writer=SimpleNamespace(name="r2")
    )
    application["RunConsumers"] = lambda *_: SimpleNamespace(
        choose=lambda log: [active, beside],
        one=lambda name, log: {"archive.r2": beside}.get(name),
        start=lambda consumer, log: -1,
        differences=lambda: {"archive": ["shards was 4 and is now 3"]},
        pipeline=SimpleNamespace(name="orders"),
    )
    application["is_output"] = lambda writer: False
    application["deliver_to"] = application["deliver_again"] = deliver
    application["stop_requested"] = stop_requested
    return application["deliver"](given_job(again, consumer))


def test_a_delivery_that_was_asked_to_stop_has_not_succeeded(application):
    with pytest.raises(AskedToStop, match="a retry does the rest") as stopped:
        run(application, lambda *_, **__: Delivered(4), stops=True)
    assert not stopped.value.needs_person


def test_a_delivery_that_came_to_its_end_has(application):
    done = run(application, lambda *_, **__: Delivered(9))
    assert done["writers"]["archive"]["position"] == 9


FOLLOW = "orders.follow run"


def held(*_: Any, **__: Any) -> Delivered:
    raise LeaseHeld("orders", "archive", Lease(FOLLOW, 3, 10**15))


def given_follow(application: dict[str, Any], deadline: int) -> None:
    application["read_followed"] = lambda consensus, pipeline: Followed(FOLLOW, 0, deadline)


def test_new_messages_of_a_writer_that_a_follow_has_are_left_to_it(application):
    given_follow(application, deadline=10**18)
    done = run(application, held)["writers"]["archive"]
    assert (done["failure"], done["left_to"]) == (None, FOLLOW)


def test_a_writer_that_a_dead_follow_still_has_is_not_delivered_to(application):
    given_follow(application, deadline=1)
    with pytest.raises(LeaseHeld, match="orders/archive") as refused:
        run(application, held)
    assert not refused.value.needs_person


def test_what_is_delivered_again_is_left_to_no_follow(application):
    given_follow(application, deadline=10**18)
    with pytest.raises(LeaseHeld, match="orders/archive"):
        run(application, held, again=True)


def failing(writer: Any, *_: Any, **__: Any) -> Delivered:
    if writer.name == "r2":
        raise ConnectionError("no answer")
    return Delivered(9)


def test_a_rendition_beside_the_active_one_fails_no_run_and_is_told(application):
    done = run(application, failing)
    assert (list(done["writers"]), done["writers"]["archive"]["failure"]) == (["archive"], None)
    assert done["renditions"]["archive.r2"]["failure"] == "ConnectionError: no answer"
    assert done["differs"] == {"archive": ["shards was 4 and is now 3"]}


def test_a_rendition_that_another_process_delivers_to_is_left_to_it(application):
    def taken(writer: Any, *_: Any, **__: Any) -> Delivered:
        if writer.name == "r2":
            raise LeaseHeld("orders", "archive.r2", Lease("a build", 3, 10**15))
        return Delivered(9)

    done = run(application, taken)["renditions"]["archive.r2"]
    assert (done["failure"], done["left_to"]) == (None, "a build")


def test_one_consumer_is_delivered_to_alone_and_its_failure_is_the_runs(application):
    asked: list[str] = []

    def deliver(writer: Any, *_: Any, **__: Any) -> Delivered:
        asked.append(writer.name)
        return Delivered(9)

    assert list(run(application, deliver, consumer="archive.r2")["renditions"]) == ["archive.r2"]
    assert asked == ["r2"]
    with pytest.raises(BuildStopped, match=r"orders/archive.r2: it stopped at id -1: .*no answer"):
        run(application, failing, consumer="archive.r2")


def test_a_consumer_that_there_is_not_is_refused(application):
    with pytest.raises(NotDelivered, match=r"orders: nothing is delivered to archive.r7"):
        run(application, failing, consumer="archive.r7")
