"""deliver: a writer is brought to the end of the log, or stopped exactly where it must be.

Example N and T28 to T38 of `specs/transporter.md` in our form: position = the last finished id, a log of
fewer entries, bindings instead of a stream, gates instead of time-outs.
"""

from contextlib import suppress
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Undecided
from tidemark.delivery.binding_steps import PartDone, write_parts_here
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import LogUnreadable
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.delivery.writer import Written

pytestmark = pytest.mark.unit

END = 104
"""A log of 105 entries, ids 0 to 104, stands for the example's 104,016."""


def given_entries(house: PipelineWorld) -> None:
    """Ids 0 to 104 in 35 bindings of three; the last one is of the topic ``my``."""
    for _ in range(34):
        house.publish(another="abc")
    house.publish(my="abc")


def given_position(house: PipelineWorld, position: int) -> Stream:
    writer = Stream()
    house.register(writer, position)
    return writer


# Example N


def test_N_after_a_kill_each_consumer_gets_exactly_what_is_after_its_position(house):
    house.publish_ids(16)
    c0, c1 = Stream("c0"), Stream("c1")
    house.register(c0, 12)
    house.register(c1, 13)
    for writer in (c0, c1):
        house.deliver(writer)
    assert (c0.ids, c1.ids) == ([13, 14, 15], [14, 15])
    assert (house.position(c0), house.position(c1)) == (15, 15)


def test_N_what_is_redelivered_is_entered_into_the_offset_log(house):
    house.publish_ids(16)
    c0 = given_position(house, 12)
    house.deliver(c0)
    assert [entry.position for entry in house.positions.history("stream")] == [13, 14, 15]


# T28 to T33


def test_T28_a_consumer_without_offsets_gets_everything(house):
    given_entries(house)
    writer = Stream()
    assert house.deliver(writer).total.written == END + 1
    assert writer.ids == list(range(END + 1))


def test_T29_a_consumer_at_the_end_gets_nothing(house):
    given_entries(house)
    writer = given_position(house, END)
    assert house.deliver(writer) == Delivered(END)
    assert (writer.calls, writer.prepared) == ([], 0)


def test_T30_a_consumer_three_before_the_end_gets_three(house):
    given_entries(house)
    writer = given_position(house, END - 3)
    house.deliver(writer)
    assert writer.ids == [END - 2, END - 1, END]


def test_T31_a_commit_without_an_answer_is_an_error_and_the_next_run_delivers_two(tmp_path):
    """Instead of a time-out of 2 s: the answer to the offset's commit is missing."""
    flaky = FlakyConsensus(MemoryConsensus())
    house = PipelineWorld(tmp_path, flaky)
    house.publish_ids(END + 1)
    writer = given_position(house, END - 2)
    flaky.arm(None, Fault.REQUEST_LOST)
    with pytest.raises(Undecided):
        house.deliver(writer)
    house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([END - 1, END], END)


def test_T32_a_consumer_far_behind_gets_what_it_has_not(house):
    given_entries(house)
    writer = given_position(house, END - 60)
    house.deliver(writer)
    assert writer.ids == list(range(END - 59, END + 1))


def test_T33_a_consumer_at_the_end_is_not_waited_for(house):
    given_entries(house)
    writer = given_position(house, END)
    house.deliver(writer)
    house.publish(my="d")
    house.deliver(writer)
    assert writer.ids == [END + 1]


# T34 to T38, R16


def test_T34_what_the_filter_keeps_out_is_finished_too(house):
    house.publish(test="abcdefghi")
    archive = house.files_writer(namespaces="blah")
    assert house.deliver(archive) == Delivered(8, Written(written=0, filtered=9))
    assert (house.position(archive), house.positions.namespaces("archive")) == (8, {"test": 8})


def test_T35_a_commit_that_fails_is_one_write_and_its_own_error(tmp_path):
    class Failing(MemoryConsensus):
        fails = False

        def commit(self, key, expected, change):
            if self.fails and any(row.startswith("ack/") for row in change.puts):
                raise ConnectionError("the offset log cannot be written")
            return super().commit(key, expected, change)

    house = PipelineWorld(tmp_path, Failing())
    house.publish_ids(2)
    house.consensus.fails = True
    writer = Stream()
    with pytest.raises(ConnectionError, match="the offset log cannot be written"):
        house.deliver(writer)
    assert (writer.calls, house.position(writer)) == ([[0]], -1)


applied: list[str] = []
"""What the functions below were called with."""


def rejecting(document):
    applied.append(document.namespace)
    raise ZeroDivisionError


def dropping(document):
    applied.append(document.namespace)


def passing(document):
    applied.append(document.namespace)
    return document


def function(name: str, **keys: str) -> dict[str, dict[str, str]]:
    return {"function": {"path": f"{__name__}.{name}", **keys}}


@pytest.mark.parametrize(
    ("transforms", "written", "applications", "position"),
    [
        pytest.param([], 10, 0, 9, id="none"),
        pytest.param([function("passing")], 10, 10, 9, id="passing"),
        pytest.param([function("dropping", namespaces="^other$")], 10, 0, 9, id="another namespace's"),
        pytest.param([function("rejecting")], 0, 1, -1, id="failing"),
        pytest.param([function("dropping")], 0, 10, 9, id="dropping"),
    ],
)
def test_T36_ten_messages_through_a_transform(house, transforms, written, applications, position):
    applied.clear()
    house.publish(orders=[b'{"n": %d}' % n for n in range(10)])
    archive = house.files_writer(transforms=transforms)
    delivered = house.deliver(archive)
    assert (delivered.total.written, len(applied), delivered.position) == (written, applications, position)


def test_R16_what_a_transform_drops_is_finished_like_what_is_written(house):
    house.publish(orders="abc")
    writer = Stream(dropped={0, 1, 2})
    assert house.deliver(writer) == Delivered(2, Written(ignored=3))


def test_T37_the_target_s_own_words_are_in_the_gate(house):
    house.publish_ids(1)
    house.deliver(writer := Stream(broken=["disk on fire", "disk on fire"]))
    assert house.gate(writer).reason == "ConnectionError: disk on fire"


def test_T38_two_sinks_and_two_messages_are_four_deliveries(house):
    house.publish(orders="ab")
    sinks = Stream("one"), Stream("two")
    for sink in sinks:
        house.deliver(sink)
    assert sum(len(sink.ids) for sink in sinks) == 4


def test_T38_what_is_in_flight_when_it_is_asked_to_stop_is_delivered_whole(house):
    house.publish(orders="a" * 20)
    house.publish(orders="b" * 20)
    writer, asked = Stream(), []
    writer.before_write = lambda part, writing: asked.append(True)
    delivered = house.deliver(writer, is_stopping=lambda: bool(asked))
    assert (writer.ids, delivered.position, house.state(writer).lease) == (list(range(20)), 19, None)


def test_T38_a_run_that_is_asked_to_stop_before_it_began_does_nothing(house):
    house.publish_ids(2)
    assert house.deliver(Stream(), is_stopping=lambda: True) == Delivered(-1)


# Binding by binding


def test_every_binding_is_a_commit_of_its_own(house):
    house.publish(orders="abc")
    house.publish(orders="de")
    house.deliver(Stream())
    assert [entry.position for entry in house.positions.history("stream")] == [2, 4]


def test_a_binding_is_finished_before_its_commit(house):
    house.publish(orders="abc")
    house.publish(orders="de")
    seen = []
    writer = Stream()
    writer.before_write = lambda part, writing: seen.append((house.position(writer), len(writer.finished)))
    house.deliver(writer)
    assert seen == [(-1, 0), (2, 1)]


def test_a_binding_that_ends_with_a_hole_is_finished_to_its_end(house):
    house.publish(orders="ab--")
    assert house.deliver(Stream()).position == 3


def test_a_binding_of_holes_is_finished_too(house):
    house.publish(orders="a")
    house.publish(orders="---")
    house.publish(orders="b")
    writer = Stream()
    house.deliver(writer)
    assert (writer.ids, [b.end for b in writer.finished]) == ([0, 4], [0, 3, 4])


def test_what_is_bound_but_not_published_is_not_delivered(house):
    house.publish(orders="a")
    log = house.log
    house.publish(orders="b")
    writer = Stream()
    deliver_to(writer, log, house.positions, "run", write_parts_here, limit=9, reload=house.reload(writer))
    assert (writer.ids, house.position(writer)) == ([0], 0)


def test_an_empty_log_is_nothing_to_do(house):
    writer = Stream()
    assert house.deliver(writer) == Delivered(-1)
    assert house.position(writer) == -1


def test_delivering_again_at_the_end_changes_no_position_and_writes_nothing(house):
    house.publish(orders="abc")
    writer = Stream()
    house.deliver(writer)
    house.deliver(writer)
    assert (writer.calls, house.positions.history("stream")[-1].position) == ([[0, 1, 2]], 2)


# The limit


@pytest.mark.parametrize(
    ("limit", "position"),
    [
        pytest.param(1, 2, id="less than a binding: one all the same"),
        pytest.param(3, 2, id="exactly one"),
        pytest.param(5, 2, id="two do not fit"),
        pytest.param(6, 5, id="exactly two"),
        pytest.param(8, 5, id="the third does not fit"),
        pytest.param(9, 8, id="all"),
    ],
)
def test_at_least_one_binding_and_then_at_most_the_limit(house, limit, position):
    for _ in range(3):
        house.publish(orders="abc")
    assert house.deliver(Stream(), limit=limit).position == position


def test_the_limit_counts_from_the_position(house):
    for _ in range(3):
        house.publish(orders="abc")
    assert house.deliver(given_position(house, 2), limit=6).position == 8


# Files


def test_a_folder_that_cannot_be_written_is_a_failure_of_the_target(house):
    house.publish(orders="abc")
    (house.root / "archive").write_text("a file where the folder should be")
    archive = house.files_writer()
    house.deliver(archive)
    gate = house.gate(archive)
    assert (gate.cause, gate.where, house.position(archive)) == (Cause.TARGET, "ids 0 to 2", -1)
    assert gate.reason.startswith("orders/archive: nothing can be written into ")


def test_another_file_under_a_binding_s_name_is_a_failure_of_the_target(house):
    house.publish(orders="abc")
    house.deliver(house.files_writer())
    (path,) = [path for path in (house.root / "archive").iterdir() if path.is_file()]
    path.write_bytes(b"somebody's")
    house.rewind("archive", -1)
    house.deliver(archive := house.files_writer())
    assert (house.gate(archive).cause, path.read_bytes()) == (Cause.TARGET, b"somebody's")
    assert "It was kept as it is" in house.gate(archive).reason


def test_a_wall_leaves_no_file(house):
    house.publish(orders=[b"{}", b"no json", b"{}"])
    archive = house.files_writer(transforms=[{"omit": {"fields": ["x"]}}])
    house.deliver(archive)
    assert (house.position(archive), house.gate(archive).first_id, house.output()) == (0, 1, {})


def test_what_is_acknowledged_is_left_out(house):
    house.publish(orders=[b"{}", b"no json", b"{}"])
    archive = house.files_writer(transforms=[{"omit": {"fields": ["x"]}}])
    house.deliver(archive)
    house.acknowledge(archive, 1)
    house.operator.open("archive").execute(house.deed("open"))
    house.deliver(archive)
    (path,) = (house.root / "archive").glob("*.parquet")
    assert (pq.read_table(path)["id"].to_pylist(), house.position(archive)) == ([0, 2], 2)


# What travels


def test_an_answer_is_the_same_unless_the_log_could_not_be_read():
    assert PartDone(Written(3)).with_log() == PartDone(Written(3))
    with pytest.raises(LogUnreadable, match="gone"):
        PartDone(unreadable="gone").with_log()


def test_a_gate_s_range_is_of_its_own_binding_only(house):
    """A run may have begun with bindings that went well."""
    for _ in range(2):
        house.publish(orders="ab")
    house.deliver(writer := Stream(refused={3}))
    expected = WriterGate(Cause.TARGET, 2, 3, 3, "ConnectionError: no answer to 3", house.clock.now)
    assert replace(house.gate(writer), version=0) == expected


def test_a_run_that_fails_in_its_executors_is_no_failure_of_the_target(house):
    """Whatever runs the parts may die by itself: the run fails, and the next one does it again."""
    house.publish(orders="a")
    writer = Stream()

    def lost_executor(*_):
        raise RuntimeError("executor lost")

    with suppress(RuntimeError):
        house.deliver(writer, write_parts=lost_executor)
    assert (house.gate(writer), house.position(writer), house.state(writer).lease) == (None, -1, None)
