"""docs/extending.md is true: its packages are installed, and messages really go through what they declare."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from tests.support.compaction_samples import Sent
from tests.support.compaction_world import HOUR, World
from tests.support.installed_packages import files_on, installed, write_package
from tests.support.pipeline_world import PipelineWorld

from tidemark.connections import Connections
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.state.writer_state import Cause
from tidemark.pipeline.loader import PipelineRefused, load_pipeline
from tidemark.pipeline.model import Pipeline
from tidemark.settings import ROOT, Settings
from tidemark.writers.renditions import build_declared

pytestmark = pytest.mark.unit

LINES, SHOP = "tidemark-lines", "shop-kinds"


class Crashed(BaseException):
    """The process is gone; nothing in the library catches this."""


def packages() -> dict[str, dict[str, str]]:
    """The files of each package on the page; a pyproject.toml begins one, and its pipeline ends it."""
    found: list[dict[str, str]] = []
    for path, text in files_on((ROOT / "docs" / "extending.md").read_text()):
        if path == "pyproject.toml":
            found.append({})
        found[-1][path] = text
    return dict(zip((LINES, SHOP), found, strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the page's packages are installed."""
    site = tmp_path / "site"
    for files in packages().values():
        modules = {path: text for path, text in files.items() if path.endswith(".py")}
        write_package(site, files["pyproject.toml"], modules)
    with installed(site):
        yield tmp_path


@dataclass
class LineServer:
    """The server of the page: keeps lines and says the last id, at first and when the client is done."""

    lines: list[str] = field(default_factory=list)
    hang_up_after: int | None = None
    """Once: the connection breaks when so many lines of it were stored."""

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        Thread(target=self._serve, daemon=True).start()

    @property
    def last_id(self) -> int:
        return int(self.lines[-1].split()[0]) if self.lines else -1

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                self._answer(stream)
                for number, line in enumerate(stream, start=1):
                    self.lines.append(line.decode().rstrip("\n"))
                    if number == self.hang_up_after:
                        self.hang_up_after = None
                        connection.shutdown(socket.SHUT_RDWR)
                        break
                else:
                    self._answer(stream)

    def _answer(self, stream: Any) -> None:
        try:
            stream.write(b"%d\n" % self.last_id)
            stream.flush()
        except OSError:
            pass  # a client that only looked, or is gone


@pytest.fixture
def server() -> Iterator[LineServer]:
    opened = LineServer()
    yield opened
    opened.close()


def given_pipeline(folder: Path, name: str, **changed: str) -> Pipeline:
    """A pipeline file of the page, with some of its text replaced."""
    file = folder / "pipelines" / f"{name}.yaml"
    texts = {path: text for files in packages().values() for path, text in files.items()}
    text = texts[f"pipelines/{name}.yaml"]
    for old, new in changed.items():
        text = text.replace(old, new)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return load_pipeline(file, Settings.read({"TIDEMARK_HOME": str(folder)}))


def the_writer(pipeline: Pipeline) -> Any:
    connections = Connections.model_construct(kafka=None, cassandra={}, kafka_targets={}, others={})
    return build_declared(pipeline, connections, pipeline.writers[0].name).writer


def lines_writer(folder: Path, server: LineServer) -> Any:
    return the_writer(given_pipeline(folder, "orders", **{"7007": str(server.port)}))


def test_the_writer_takes_less_than_eighty_lines() -> None:
    modules = [text for path, text in packages()[LINES].items() if path.endswith(".py")]
    assert sum(bool(line.strip()) for text in modules for line in text.splitlines()) < 80


def test_every_message_becomes_a_line(folder: Path, server: LineServer) -> None:
    house = PipelineWorld(folder)
    house.publish(orders="ab-c")
    house.publish(orders=[b"last"])
    writer = lines_writer(folder, server)
    done = house.deliver(writer)
    assert server.lines == ["0 a", "1 b", "3 c", "4 last"]
    assert (done.position, done.total.written) == (4, 4)


def test_a_broken_connection_is_tried_again_and_no_line_comes_twice(folder: Path, server: LineServer) -> None:
    house = PipelineWorld(folder)
    house.publish(orders="abcdef")
    server.hang_up_after = 2
    done = house.deliver(lines_writer(folder, server))
    assert server.lines == ["0 a", "1 b", "2 c", "3 d", "4 e", "5 f"]
    assert (done.position, done.gate) == (5, None)


def test_a_crash_before_the_position_is_committed_doubles_nothing(folder: Path, server: LineServer) -> None:
    house = PipelineWorld(folder)
    house.publish(orders="abc")
    writer = lines_writer(folder, server)

    def write_and_die(*arguments: Any) -> Any:
        write_parts_here(*arguments)
        raise Crashed

    with pytest.raises(Crashed):
        house.deliver(writer, write_parts=write_and_die)
    assert (server.last_id, house.position(writer)) == (2, -1)
    house.clock.pass_seconds(3600)  # the lease of the dead run
    done = house.deliver(writer, "next run")
    assert server.lines == ["0 a", "1 b", "2 c"]
    assert (done.position, done.total.written, done.total.ignored) == (2, 0, 3)


def test_a_bad_message_stops_the_writer_right_before_it(folder: Path, server: LineServer) -> None:
    house = PipelineWorld(folder)
    house.publish(orders=[b"a", b"two\nlines", b"c"])
    writer = lines_writer(folder, server)
    done = house.deliver(writer)
    assert server.lines == ["0 a"]
    assert done.position == 0
    assert done.gate is not None
    assert done.gate.cause is Cause.MESSAGE
    assert "more than one line" in done.gate.reason
    house.acknowledge(writer, 1)
    house.resume(writer)
    assert server.lines == ["0 a", "2 c"]


def test_a_second_writer_to_the_same_server_is_refused(folder: Path) -> None:
    second = "7007}\n  - {name: other, kind: lines, host: 127.0.0.1, port: 7007}"
    with pytest.raises(PipelineRefused, match="Give every writer its own port"):
        given_pipeline(folder, "orders", **{"7007}": second})


def test_its_keys_are_checked_like_any_other(folder: Path) -> None:
    with pytest.raises(
        PipelineRefused, match=r"`writers\[0\].hots` is an unknown key. Did you mean `host`\?"
    ):
        given_pipeline(folder, "orders", **{"host:": "hots:"})
    with pytest.raises(PipelineRefused, match="It must be at most 65535"):
        given_pipeline(folder, "orders", **{"7007": "70007"})


def test_a_misspelt_kind_lists_the_known_ones_with_their_packages(folder: Path) -> None:
    with pytest.raises(PipelineRefused) as refused:
        given_pipeline(folder, "orders", **{"kind: lines": "kind: line"})
    said = (
        "is `line`, which no writer is. Kinds: journal, files, kafka, collection, lines (package "
        "tidemark-lines). Did"
    )
    assert said in str(refused.value)
    assert f"``{said} you mean `lines`?``" in (ROOT / "docs" / "extending.md").read_text()


def test_the_format_and_the_transform_of_the_page(folder: Path) -> None:
    house = PipelineWorld(folder)
    pipeline = given_pipeline(
        folder, "cards", **{"/data/cards": str(folder / "cards"), "name: cards": "name: orders"}
    )
    card = msgspec.msgpack.encode({"number": "4111222233334444"})
    house.publish(cards=[card, b"\xc1", card])
    writer = the_writer(pipeline)
    assert writer.shape["source_format"] == "msgpack"
    done = house.deliver(writer)
    assert done.gate is not None
    assert "its value is not a msgpack document" in done.gate.reason
    house.acknowledge(writer, 1)
    house.resume(writer)
    (file,) = (folder / "cards").glob("*.jsonl")
    values = [json.loads(json.loads(line)["value"]) for line in file.read_text().splitlines()]
    assert values == [{"number": "************4444"}] * 2


def test_the_policy_of_the_page(folder: Path) -> None:
    policy = given_pipeline(folder, "cards").log.compaction.policy
    world = World(folder / "log", policy)
    for keys in (["ann/1", "bob/1", None, "ann/2"], ["bob/2", "cy/1"], ["ann/3"]):
        world.publish(*(Sent(key.encode() if key else None) for key in keys))
    world.move(world.control.log_head().end)
    head = world.control.bindings_head()
    world.control.advance_upper(head, head.upper + 2 * HOUR)
    world.compact()
    assert world.ids() == [2, 3, 4, 5, 6], "the last of ann and bob, what has no key, and the active segment"
    assert world.log.policies == ("per-customer",)
