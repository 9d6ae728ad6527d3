"""resume when something fails, goes in bulk, and what a person sees of it."""

from dataclasses import replace

import pytest
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import given_failed_bulk, given_gate, given_stopped

from tidemark.app.open_pipeline import resumes_by_itself
from tidemark.consensus.lease import LEASE
from tidemark.delivery.published_log import LogUnreadable
from tidemark.delivery.resume import Resumed
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.delivery.writer import Written

pytestmark = pytest.mark.unit


# Failures


def test_the_same_message_failing_again_is_counted(house):
    writer = given_failed_bulk(house, Stream("c0"))
    counted = [house.resume(writer).gate.failures for _ in range(3)]
    assert counted == [1, 2, 3]


def test_another_message_is_counted_anew(house):
    writer = given_failed_bulk(house, Stream("c0"))
    house.resume(writer)
    house.resume(writer)
    writer.refused = {15}
    assert house.resume(writer).gate.failures == 1


def test_a_message_that_stopped_a_bulk_and_then_a_resume_has_failed_twice(house):
    house.publish(orders="abc")
    house.deliver(writer := Stream(bad={1}))
    assert house.resume(writer).gate.failures == 2


def test_every_failure_is_another_closing_of_the_gate(house):
    writer = given_failed_bulk(house, Stream("c0"))
    versions = [house.gate(writer).version]
    for _ in range(3):
        house.resume(writer)
        versions.append(house.gate(writer).version)
    assert versions == sorted(set(versions))


def test_acknowledgements_on_the_way_are_the_same_closing(house):
    writer = given_failed_bulk(house, Stream("c0"))
    writer.refused = set()
    version = house.gate(writer).version
    seen = set()

    def look(part, writing):
        house.clock.pass_seconds(2)
        seen.add(house.gate(writer).version)

    writer.before_write = look
    house.resume(writer)
    assert seen == {version}


def test_a_message_that_cannot_be_understood_leaves_the_position_right_before_it(house):
    writer = given_stopped(house, Stream(), "a--d")
    writer.bad = {3}
    resumed = house.resume(writer)
    assert (resumed.position, resumed.gate.cause, resumed.gate.where) == (2, Cause.MESSAGE, "id 3")


def test_a_message_that_the_target_refuses_leaves_the_position_at_the_last_good_one(house):
    writer = given_stopped(house, Stream(), "a--d")
    writer.refused = {3}
    resumed = house.resume(writer)
    assert (resumed.position, resumed.gate.cause, resumed.gate.where) == (0, Cause.TARGET, "id 3")


def test_a_target_that_cannot_be_prepared_leaves_everything_as_it_is(house):
    writer = given_failed_bulk(house, Stream("c0"))
    writer.unprepared = ["no keyspace"]
    resumed = house.resume(writer)
    assert (resumed.position, writer.calls) == (8, [])
    assert (resumed.gate.where, resumed.gate.reason) == ("ids 9 to 15", "ConnectionError: no keyspace")


def test_a_binding_that_cannot_be_finished_stays_before_its_end(house):
    writer = given_stopped(house, Stream(), "abc")
    writer.unfinished = ["no answer"]
    resumed = house.resume(writer)
    assert (resumed.position, resumed.gate.where, resumed.gate.reason) == (
        1,
        "id 2",
        "ConnectionError: no answer",
    )


def test_a_binding_that_could_not_be_finished_is_finished_by_the_next_resume(house):
    writer = given_stopped(house, Shelf(), "abc")
    writer.unfinished = ["no answer"]
    house.resume(writer)
    assert house.resume(writer) == Resumed(2, 1, None)
    assert writer.ids == [0, 1, 2]


def test_a_folder_that_cannot_be_written_moves_nothing(house):
    house.publish(orders="abc")
    (house.root / "archive").write_text("a file where the folder should be")
    archive = house.files_writer()
    house.deliver(archive)
    resumed = house.resume(archive)
    assert (resumed.position, resumed.delivered, resumed.gate.where) == (-1, 0, "id 0")


def test_a_message_that_turns_out_bad_when_the_binding_is_finished_is_named(house):
    writer = given_stopped(house, Shelf(), "abc")
    write = writer.write
    writer.write = lambda part, writing: (write(part, writing) and writer.bad.add(1)) or Written(1)
    resumed = house.resume(writer)
    assert (resumed.gate.cause, resumed.gate.where) == (Cause.MESSAGE, "id 1")


def test_a_log_that_cannot_be_read_changes_nothing(house):
    writer = given_stopped(house, Stream(), "abc")
    before = house.gate(writer)
    (file,) = house.log.manifest.files
    (house.root / "log" / file.path).unlink()
    with pytest.raises(LogUnreadable):
        house.resume(writer)
    assert (house.position(writer), house.gate(writer), house.state(writer).lease) == (-1, before, None)


def test_a_resume_that_lost_its_writer_commits_nothing(house):
    writer = given_stopped(house, Stream(), "abcd")

    def pause(part, writing):
        if part.first_id == 2:
            writer.before_write = lambda part, writing: None
            house.clock.now += LEASE
            house.resume(writer, "next")

    writer.before_write = pause
    with pytest.raises(LeaseLost, match="zombie"):
        house.resume(writer, "zombie")
    assert (writer.ids, house.position(writer), house.gate(writer)) == ([0, 1, 2, 3], 3, None)


def test_a_long_resume_does_not_ask_whether_it_still_has_the_writer(house, monkeypatch):
    """Its lease is prolonged with every commit, and each message is sent with the lease as it is then."""
    writer = given_stopped(house, Stream(), "abcdefgh")

    def check(part, writing):
        house.clock.now += LEASE // 2
        monkeypatch.setattr(house.positions.__class__, "load", lambda *_: pytest.fail("asked"))
        writing.lease.check()
        monkeypatch.undo()

    writer.before_write = check
    assert house.resume(writer).position == 7


# In bulk after a while


def test_after_so_many_clean_messages_the_rest_goes_in_bulk(house):
    writer = given_stopped(house, Stream(), "abcdef")
    assert house.resume(writer, singly=2) == Resumed(5, 2, None)
    assert writer.calls == [[0], [1], [0, 1, 2, 3, 4, 5]]


def test_the_next_binding_goes_in_bulk_at_once(house):
    writer = given_stopped(house, Stream(), "ab", "cd", "ef")
    house.close_gate(writer, replace(house.gate(writer), through=5))
    assert house.resume(writer, singly=2) == Resumed(5, 2, None)
    assert writer.calls == [[0], [1], [2, 3], [4, 5]]


def test_zero_is_never_in_bulk(house):
    writer = given_stopped(house, Stream(), "abcdef")
    house.resume(writer, singly=0)
    assert [len(call) for call in writer.calls] == [1] * 6


def test_what_was_done_singly_is_durable_before_the_bulk_begins(house):
    writer = given_stopped(house, Stream(), "abcdef")
    seen = []
    writer.before_write = lambda part, writing: seen.append((part.is_whole, house.position(writer)))
    house.resume(writer, singly=2)
    assert seen[-1] == (True, 1)


def test_a_bulk_that_fails_counts_its_failures_too(house):
    writer = given_stopped(house, Stream(), "abcdef")
    writer.refused = {4}
    first = house.resume(writer, singly=2)
    assert (first.position, first.gate.where, first.gate.failures) == (1, "ids 2 to 5", 1)


def test_a_bulk_stops_at_a_wall(house):
    writer = given_stopped(house, Stream(), "abcdef")
    writer.bad = {4}
    resumed = house.resume(writer, singly=2)
    assert (resumed.position, resumed.gate.where) == (3, "id 4")


def test_a_bulk_never_goes_beyond_through(house):
    writer = given_stopped(house, Stream(), "abcd")
    house.close_gate(writer, replace(house.gate(writer), through=2))
    house.resume(writer, singly=1)
    assert writer.calls == [[0], [1], [2]]


def test_a_resume_in_bulk_is_asked_to_stop_between_bindings(house):
    writer = given_stopped(house, Stream(), "ab", "cd", "ef")
    house.close_gate(writer, replace(house.gate(writer), through=5))
    resumed = house.resume(writer, singly=1, is_stopping=lambda: [2, 3] in writer.calls)
    assert (resumed.interrupted, resumed.position) == (True, 3)


# What a person sees


def test_progress_says_which_writer_is_where_how_many_are_left_and_the_rate(house):
    writer = given_stopped(house, Stream(), "abcdefgh")
    writer.before_write = lambda part, writing: house.clock.pass_seconds(1)
    house.resume(writer)
    assert house.shown == [
        "orders/stream: finished id 4, 3 ids left to 7, 1/s",
        "orders/stream: at id 7, the gate is open",
    ]


def test_a_failure_is_shown_with_its_count_and_its_reason(house):
    writer = given_failed_bulk(house, Stream("c0"))
    house.resume(writer)
    assert house.shown == ["orders/c0: id 14 failed (1): ConnectionError: no answer to 14"]


def test_the_summary_of_a_failed_resume(house):
    writer = given_failed_bulk(house, Stream("c0"))
    assert house.resume(writer).to_dict() == {
        "position": 13,
        "delivered": 0,  # the bulk that failed had sent them
        "gate": "stopped",
        "reason": "ConnectionError: no answer to 14",
        "failed_id": 14,
        "failures": 1,
        "interrupted": False,
    }


def test_the_summary_of_a_whole_resume(house):
    writer = given_stopped(house, Stream(), "ab")
    assert house.resume(writer).to_dict() == {
        "position": 1,
        "delivered": 2,
        "gate": "open",
        "reason": None,
        "failed_id": None,
        "failures": 0,
        "interrupted": False,
    }


@pytest.mark.parametrize(
    ("cause", "failures", "by_itself"),
    [
        (Cause.MESSAGE, 1, True),
        (Cause.TARGET, 1, True),
        (Cause.MESSAGE, 2, False),
        (Cause.TARGET, 2, False),
        (Cause.HAND, 1, False),
        (Cause.VERIFICATION, 1, False),
    ],
)
def test_R27_what_failed_again_and_what_a_person_closed_waits_for_a_person(cause, failures, by_itself):
    gate = WriterGate(cause, 1, 1, 1, "why", 0, failures=failures)
    assert resumes_by_itself(gate) == by_itself


# The same bytes


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
@pytest.mark.parametrize("singly", [0, 2])
def test_a_resumed_writer_s_files_are_those_of_an_undisturbed_one(house, file_format, singly):
    for letters in ("abc", "d-e", "---", "fgh"):
        house.publish(orders=letters, refunds=letters)
    disturbed = house.files_writer("disturbed", format=file_format)
    house.register(disturbed)
    given_gate(house, disturbed, Cause.TARGET, house.log.end)
    house.resume(disturbed, singly=singly)
    house.deliver(house.files_writer("undisturbed", format=file_format))
    assert house.output("disturbed") == house.output("undisturbed")


def test_a_resume_leaves_nothing_staged(house):
    house.publish(orders="abc")
    archive = house.files_writer()
    house.register(archive)
    given_gate(house, archive, Cause.TARGET, 2)
    house.resume(archive)
    assert [path for path in (house.root / "archive" / "staging").rglob("*") if path.is_file()] == []


def test_a_resume_verifies_a_file_that_is_there_already(house):
    house.publish(orders="abc")
    house.deliver(archive := house.files_writer())
    (path,) = (house.root / "archive").glob("*.parquet")
    path.write_bytes(b"somebody's")
    house.rewind("archive", -1)
    given_gate(house, archive, Cause.TARGET, 2)
    resumed = house.resume(archive)
    assert f"{path} is damaged" in resumed.gate.reason


def test_three_writers_one_of_them_stopped_for_ten_bindings_end_the_same(house):
    names = ("one", "two", "three")
    writers = {name: house.files_writer(name) for name in names}
    for number in range(12):
        house.publish(orders="abc", refunds="d-")
        for name, writer in writers.items():
            if number == 1 and name == "two":
                house.root.joinpath("two").rename(house.root / "away")
                house.root.joinpath("two").write_text("in the way")
            house.deliver(writer)
    stopped = house.position(writers["two"])
    house.root.joinpath("two").unlink()
    house.root.joinpath("away").rename(house.root / "two")
    house.resume(writers["two"])
    house.deliver(writers["two"])
    assert stopped == 4
    assert house.output("two") == house.output("one") == house.output("three")
    assert {house.position(writer) for writer in writers.values()} == {house.log.end}
