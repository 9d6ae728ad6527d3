"""``tidemark.OpLog`` against a scripted agent on loopback."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import pytest
from tests.support.model_agent import ModelAgent, block, opened, operation, state_of
from tests.support.scripted_agent import STREAM, Received, Reset, ScriptedAgent, Silence, Step, answer
from tests.support.waiting import wait_until

import tidemark
from tidemark.oplog.consumer import opened as opened_consumer
from tidemark.oplog.consumer import position_keeper
from tidemark.oplog.consumer.errors import (
    AgentUnreachable,
    BadOpLogOption,
    NothingDone,
    PositionNotSaved,
    StateFileEmpty,
    StateFileInUse,
    StreamDenied,
    StreamRefused,
)
from tidemark.oplog.consumer.state_file import StateFile

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("_at_once")]

LOG = [("insert", "a"), ("insert", "b"), ("update", "a"), ("delete", "b"), ("insert", "c")]


def endless(stream: bytes) -> list[Step]:
    return [STREAM, stream, Silence()]


def at(*blocks: bytes) -> Callable[[Received], Iterable[Step]]:
    """Answers every request with these blocks, and keeps the connection."""
    return lambda request: endless(b"".join(blocks))


def whole(request: Received) -> Iterable[Step]:
    """A model agent that keeps its connections."""
    return endless(ModelAgent(LOG).stream(request.last_event_id))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "position"


def test_R22_without_a_state_file_of_before_everything_comes_first(path):
    with ScriptedAgent(whole) as agent, tidemark.OpLog(agent.url, state_file=path) as oplog:
        assert [item.event for item in islice(oplog, 4)] == ["reset", "insert", "insert", "live"]
        assert agent.requests[0].last_event_id == "0"


def test_without_replications_a_first_start_begins_now(path):
    with (
        ScriptedAgent(
            lambda request: endless(opened("live", "o1.5") + operation("insert", "x", "o1.6"))
        ) as agent,
        tidemark.OpLog(agent.url, state_file=path, allow_replication=False) as oplog,
    ):
        assert next(oplog).event == "insert"
        assert agent.requests[0].last_event_id is None
        assert oplog.position == "o1.5"


def test_the_position_is_saved_on_exit(path):
    with ScriptedAgent(whole) as agent, tidemark.OpLog(agent.url, state_file=path) as oplog:
        for item in islice(oplog, 4):
            oplog.done(item)
    assert path.read_text() == "o1.5\n"


def test_the_position_is_saved_while_the_consumer_waits(path, monkeypatch):
    monkeypatch.setattr(position_keeper, "EVERY", 0.01)
    with ScriptedAgent(whole) as agent, tidemark.OpLog(agent.url, state_file=path) as oplog:
        for item in islice(oplog, 4):
            oplog.done(item)
        wait_until(lambda: path.read_text() == "o1.5\n")


def test_a_restart_continues_where_it_was(path):
    with ScriptedAgent(whole) as agent:
        path.write_text("o1.3\n")
        with tidemark.OpLog(agent.url, state_file=path) as oplog:
            assert [(item.event, item.id) for item in islice(oplog, 2)] == [("delete", "b"), ("insert", "c")]
        assert path.read_text() == "o1.3\n"


def test_the_id_of_a_reset_is_durable_before_it_is_handed_out(path):
    path.write_text("o1.3\n")
    with (
        ScriptedAgent(
            lambda request: endless(ModelAgent(LOG, kept=5).stream(request.last_event_id))
        ) as agent,
        tidemark.OpLog(agent.url, state_file=path) as oplog,
    ):
        assert next(oplog).event == "reset"
        assert path.read_text() == "r1.5.0\nreset\n"


def test_a_reset_that_could_not_be_saved_is_handed_out_once_it_can(path, monkeypatch):
    real = StateFile.save

    def full(self, position):
        raise PositionNotSaved(str(path), "No space left on device")

    with ScriptedAgent(whole) as agent, tidemark.OpLog(agent.url, state_file=path) as oplog:
        monkeypatch.setattr(StateFile, "save", full)
        with pytest.raises(PositionNotSaved):
            next(oplog)
        monkeypatch.setattr(StateFile, "save", real)
        assert [item.event for item in islice(oplog, 2)] == ["reset", "insert"]


def test_a_save_that_failed_in_the_background_is_raised(path, monkeypatch):
    monkeypatch.setattr(position_keeper, "EVERY", 0.01)
    real = StateFile.save
    failed = threading.Event()

    def full(self, position):
        failed.set()
        raise PositionNotSaved(str(path), "No space left on device")

    with ScriptedAgent(whole) as agent, tidemark.OpLog(agent.url, state_file=path) as oplog:
        oplog.done(next(oplog))
        monkeypatch.setattr(StateFile, "save", full)
        oplog.done(next(oplog))
        assert failed.wait(60)
        with pytest.raises(PositionNotSaved):
            next(oplog)
        monkeypatch.setattr(StateFile, "save", real)
        assert next(oplog).event == "insert"


def test_an_empty_state_file_is_an_error_and_nothing_is_connected(path):
    path.touch()
    with ScriptedAgent(whole) as agent:
        with pytest.raises(StateFileEmpty):
            tidemark.OpLog(agent.url, state_file=path)
        assert agent.requests == []
    StateFile.open(path).close()


def test_two_consumers_with_one_state_file_are_refused(path):
    with tidemark.OpLog("http://127.0.0.1:1", state_file=path), pytest.raises(StateFileInUse):
        tidemark.OpLog("http://127.0.0.1:1", state_file=path)


def test_a_consumer_that_is_dropped_saves_its_position(path):
    with ScriptedAgent(whole) as agent:
        oplog = tidemark.OpLog(agent.url, state_file=path)
        for item in islice(oplog, 4):
            oplog.done(item)
        del oplog
        gc.collect()
        assert path.read_text() == "o1.5\n"
        StateFile.open(path).close()


PROGRAM = """
import sys
from itertools import islice
import tidemark
oplog = tidemark.OpLog(sys.argv[1], state_file=sys.argv[2])
for item in islice(oplog, 4):
    oplog.done(item)
"""


def test_a_process_that_exits_without_closing_saves_its_position(path):
    with ScriptedAgent(whole) as agent:
        subprocess.run([sys.executable, "-c", PROGRAM, agent.url, path], check=True)
    assert path.read_text() == "o1.5\n"


class Cut:
    """Answers with the stream of a model, the first connections cut after so many bytes."""

    def __init__(self, model: ModelAgent, cuts: list[int], end: Step) -> None:
        self._model = model
        self._cuts = iter(cuts)
        self._end = end

    def __call__(self, request: Received) -> Iterable[Step]:
        stream = b"retry: 1\n\n" + self._model.stream(request.last_event_id)
        cut = next(self._cuts, None)
        return endless(stream) if cut is None else [STREAM, stream[:cut], self._end]


@pytest.mark.parametrize("end", [b"", Reset()], ids=["closed", "reset"])
def test_C16_C17_cut_fifty_times_the_copy_equals_the_source(path, end):
    model = ModelAgent([("insert", str(index % 7)) for index in range(20)] + LOG)
    copy = {"old"}
    with (
        ScriptedAgent(Cut(model, list(range(10, 1_010, 20)), end)) as agent,
        tidemark.OpLog(agent.url, state_file=path) as oplog,
    ):
        for item in oplog:
            if item.event == "reset":
                copy.clear()
            elif item.event == "delete":
                copy.discard(item.id)
            elif item.event != "live":
                copy.add(item.id)
            oplog.done(item)
            if item.event == "live":
                break
            if len(model.log) < 60:
                model.log.append(("delete" if len(model.log) % 3 else "insert", str(len(model.log) % 9)))
        live_at = int(oplog.position.removeprefix("o1."))
        for item in islice(oplog, len(model.log) - live_at):
            (copy.discard if item.event == "delete" else copy.add)(item.id)
    assert copy == state_of(model.log)
    assert len(agent.requests) > 5


def test_a_half_open_connection_is_given_up(path):
    answers = iter([[STREAM, opened("exact", "o1.0"), Silence()]])

    def script(request: Received) -> Iterable[Step]:
        return next(answers, None) or endless(operation("insert", "x", "o1.1"))

    path.write_text("o1.0\n")
    with ScriptedAgent(script) as agent, tidemark.OpLog(agent.url, state_file=path, silence=0.2) as oplog:
        assert next(oplog).event == "insert"
    assert len(agent.requests) == 2


def test_an_agent_that_accepts_and_never_answers_is_given_up():
    answers = iter([[Silence()]])

    def script(request: Received) -> Iterable[Step]:
        return next(answers, None) or endless(operation("insert", "x", "o1.1"))

    with ScriptedAgent(script) as agent, tidemark.OpLog(agent.url, silence=0.2) as oplog:
        assert next(oplog).event == "insert"


def test_C22_heartbeats_keep_a_connection(path):
    beats = [b":\n\n"] * 3
    with (
        ScriptedAgent(lambda request: [STREAM, *beats, operation("insert", "x", "o1.1"), Silence()]) as agent,
        tidemark.OpLog(agent.url) as oplog,
    ):
        assert next(oplog).event == "insert"
    assert len(agent.requests) == 1


def test_events_in_chunks_of_the_transfer_encoding():
    head = STREAM.replace(b"Connection: close", b"Transfer-Encoding: chunked")
    pieces = operation("insert", "x", "o1.1").partition(b"data")
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    with (
        ScriptedAgent(lambda request: [head, chunks, Silence()]) as agent,
        tidemark.OpLog(agent.url) as oplog,
    ):
        assert next(oplog).event == "insert"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (answer(401, b"no token"), StreamDenied),
        (answer(403), StreamDenied),
        (answer(400, b"bad id"), StreamRefused),
        (answer(200, b"<html>", Content_Type="text/html"), StreamRefused),
        (answer(302, Location="http://elsewhere/"), StreamRefused),
    ],
)
def test_an_answer_that_ends_the_iteration(said, error):
    with ScriptedAgent(lambda request: [said]) as agent, tidemark.OpLog(agent.url) as oplog:
        with pytest.raises(error):
            next(oplog)
        assert len(agent.requests) == 1


@pytest.mark.parametrize("said", [answer(503), answer(429), b"garbage\r\n\r\n", b"", Reset()])
def test_an_answer_that_is_tried_again(said):
    answers = iter([[said]])

    def script(request: Received) -> Iterable[Step]:
        return next(answers, None) or endless(operation("insert", "x", "o1.1"))

    with ScriptedAgent(script) as agent, tidemark.OpLog(agent.url) as oplog:
        assert next(oplog).event == "insert"


def test_no_agent_is_an_error_after_as_many_attempts_as_allowed():
    with ScriptedAgent(whole) as agent:
        url = agent.url
    with tidemark.OpLog(url, attempts=3) as oplog, pytest.raises(AgentUnreachable) as unreachable:
        next(oplog)
    assert unreachable.value.attempts == 3


def test_the_token_is_sent_and_no_message_has_it():
    with (
        ScriptedAgent(lambda request: [answer(401)]) as agent,
        tidemark.OpLog(agent.url, token="secret") as oplog,
        pytest.raises(StreamDenied) as denied,
    ):
        next(oplog)
    assert agent.requests[0].headers["authorization"] == "Bearer secret"
    assert "secret" not in f"{denied.value}{denied.value!r}{oplog!r}"


def test_a_proxy_is_asked_for_the_stream():
    with (
        ScriptedAgent(at(operation("insert", "x", "o1.1"))) as proxy,
        tidemark.OpLog("http://agent.invalid:8042/ops", proxy=proxy.url) as oplog,
    ):
        assert next(oplog).event == "insert"
    assert proxy.requests[0].target == "http://agent.invalid:8042/ops"


def test_an_argument_that_is_not_valid_leaves_no_lock(path):
    with pytest.raises(BadOpLogOption):
        tidemark.OpLog("nowhere", state_file=path)
    StateFile.open(path).close()


@pytest.mark.parametrize(
    "options",
    [
        {"max_in_flight": 0},
        {"silence": 0},
        {"attempts": 0},
        {"proxy": "not a proxy"},
        {"last_event_id": "a\nb"},
        {"last_event_id": ""},
        {"last_event_id": "0", "state_file": "position"},
        {"last_event_id": "0", "since": 1},
    ],
)
def test_an_option_that_is_not_valid_is_refused(options):
    with pytest.raises(BadOpLogOption):
        tidemark.OpLog("http://127.0.0.1:1", **options)


def test_no_more_items_than_allowed_are_in_flight():
    stream = b"".join(operation("insert", str(number), f"o1.{number}") for number in range(1, 6))
    with (
        ScriptedAgent(at(stream)) as agent,
        tidemark.OpLog(agent.url, max_in_flight=2) as oplog,
    ):
        first, second = islice(oplog, 2)
        oplog.done(second)
        waiting = threading.Thread(target=lambda: third.append(next(oplog)))
        third: list[tidemark.OpLogOperation] = []
        waiting.start()
        assert not third
        oplog.done(first)
        waiting.join(60)
        assert [item.id for item in third] == ["3"]


def test_a_loop_that_never_calls_done_is_an_error_and_does_not_hang(monkeypatch):
    monkeypatch.setattr("tidemark.oplog.consumer.oplog.STALLED_AFTER", 0.05)
    assert opened_consumer.STALLED_AFTER > 60
    stream = b"".join(operation("insert", str(number), f"o1.{number}") for number in range(1, 6))
    with (
        ScriptedAgent(at(stream)) as agent,
        tidemark.OpLog(agent.url, max_in_flight=3) as oplog,
        pytest.raises(NothingDone),
    ):
        for _ in oplog:
            pass


def test_stop_ends_a_loop_that_waits_for_the_stream():
    reading = threading.Event()

    def script(request: Received) -> Iterable[Step]:
        yield STREAM + opened("live", "o1.0")
        reading.set()
        yield Silence()

    with ScriptedAgent(script) as agent, tidemark.OpLog(agent.url) as oplog:
        loop = threading.Thread(target=lambda: list(oplog))
        loop.start()
        assert reading.wait(60)
        wait_until(lambda: oplog.position == "o1.0")
        oplog.stop()
        loop.join(60)
        assert not loop.is_alive()
        assert list(oplog) == []


def test_stop_ends_a_loop_that_waits_for_done():
    stream = operation("insert", "x", "o1.1") + operation("insert", "y", "o1.2")
    with ScriptedAgent(at(stream)) as agent, tidemark.OpLog(agent.url, max_in_flight=1) as oplog:
        loop = threading.Thread(target=lambda: list(oplog))
        loop.start()
        wait_until(lambda: oplog._in_flight.received == "o1.1")
        oplog.stop()
        loop.join(60)
        assert not loop.is_alive()


def test_stop_ends_a_wait_for_the_next_connection(monkeypatch):
    monkeypatch.setattr("tidemark.oplog.consumer.backoff.FIRST", 30.0)
    said = answer(503, Retry_After="100")
    with ScriptedAgent(lambda request: [said]) as agent, tidemark.OpLog(agent.url) as oplog:
        loop = threading.Thread(target=lambda: list(oplog))
        loop.start()
        wait_until(lambda: agent.requests)
        oplog.stop()
        loop.join(60)
        assert not loop.is_alive()


def test_an_exception_of_a_signal_handler_loses_nothing(monkeypatch):
    stream = operation("insert", "x", "o1.1") + operation("insert", "y", "o1.2")
    model = {"o1.1": stream[len(stream) // 2 :]}
    with (
        ScriptedAgent(lambda request: endless(model.get(request.last_event_id or "", stream))) as agent,
        tidemark.OpLog(agent.url) as oplog,
    ):
        assert next(oplog).id == "x"
        real = oplog._following._item

        def interrupted(block):
            monkeypatch.setattr(oplog._following, "_item", real)
            raise KeyboardInterrupt

        monkeypatch.setattr(oplog._following, "_item", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(oplog)
        assert next(oplog).id == "y"


def test_threads_share_one_consumer_and_each_item_is_handed_out_once():
    count = 400
    stream = b"".join(operation("insert", str(number), f"o1.{number}") for number in range(1, count + 1))
    stream += block("slow", None)
    served = iter([[STREAM, stream]])
    seen: list[str] = []
    with (
        ScriptedAgent(lambda request: next(served, [STREAM, Silence()])) as agent,
        tidemark.OpLog(agent.url) as oplog,
    ):

        def work() -> None:
            for item in oplog:
                seen.append(item.id)
                oplog.done(item)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: oplog.position == f"o1.{count}")
        oplog.stop()
        for thread in threads:
            thread.join(60)
    assert sorted(seen, key=int) == [str(number) for number in range(1, count + 1)]
