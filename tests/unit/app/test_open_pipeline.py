"""A pipeline opened for a person: its writers by name, resumes that try twice, plans by their action."""

import pytest
from tests.support.memory_writers import Stream
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.delivery.operator.action_plan import NotPossible

pytestmark = pytest.mark.unit


@pytest.fixture
def house(tmp_path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def pipeline(house, stream, monkeypatch) -> OpenPipeline:
    return given_opened(house, monkeypatch, stream, Stream("other"), limits={"resume_singly": 2})


def given_stopped(house: PipelineWorld, stream: Stream, *bad: int) -> None:
    house.publish(orders="abcdef")
    stream.bad = {*bad}
    house.deliver(stream)
    stream.calls = []


def test_a_writer_is_found_by_its_name(pipeline, stream):
    assert pipeline.writer("stream") is stream


def test_a_mistyped_name_is_refused_with_those_that_there_are(pipeline):
    with pytest.raises(NotPossible, match="orders/straem: there is no such writer; there is: stream, other"):
        pipeline.writer("straem")


def test_the_state_of_a_mistyped_name_is_refused(pipeline):
    with pytest.raises(NotPossible):
        pipeline.state("straem")


def test_only_stopped_writers_are_listed_as_such(pipeline, house, stream):
    given_stopped(house, stream, 2)
    house.register(Stream("other"))
    assert {name: gate.where for name, gate in pipeline.stopped().items()} == {"stream": "id 2"}


def test_a_message_that_fails_for_the_first_time_is_tried_once_more(pipeline, house, stream):
    given_stopped(house, stream, 2)
    stream.bad = {4}
    resumed = pipeline.resume("stream", "me", print)
    assert (resumed.gate.where, resumed.gate.failures) == ("id 4", 2)


def test_a_message_that_failed_in_bulk_and_again_is_not_tried_a_third_time(pipeline, house, stream):
    given_stopped(house, stream, 2)
    assert pipeline.resume("stream", "me", print).gate.failures == 2
    assert stream.calls == [[2]]


def test_a_resume_goes_in_bulk_after_as_many_messages_as_the_pipeline_says(pipeline, house, stream):
    given_stopped(house, stream, 0)
    stream.bad = set()
    assert pipeline.resume("stream", "me", print).gate is None
    assert stream.calls == [[0], [1], [0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("action", "options"),
    [("acknowledge", {"first": 2}), ("rewind", {"position": 0}), ("open", {})],
)
def test_a_plan_is_made_by_its_action(pipeline, house, stream, action, options):
    given_stopped(house, stream, 2)
    assert getattr(pipeline, f"plan_{action}")("stream", **options).action == action


def test_a_writer_that_is_open_may_be_stopped(pipeline, house, stream):
    house.register(stream)
    assert pipeline.plan_stop("stream").action == "stop"


def test_a_retired_writer_may_be_forgotten(pipeline, house):
    house.register(Stream("retired"))
    assert pipeline.plan_forget("retired").action == "forget"


def test_a_declared_writer_may_not_be_forgotten(pipeline, house, stream):
    house.register(stream)
    with pytest.raises(NotPossible, match="it is in the pipeline's file"):
        pipeline.plan_forget("stream")
