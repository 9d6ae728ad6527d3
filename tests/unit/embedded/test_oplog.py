"""OpLog agents as a service: declared in pipeline files, started last, stopped first."""

import http.server
import threading
from collections.abc import Iterator

import pytest

from tidemark.embedded.errors import NoAgentDeclared, NoLog
from tidemark.embedded.java import Java
from tidemark.embedded.lifecycle import up, usual_services
from tidemark.embedded.logs import log_file
from tidemark.embedded.services.oplog import LocalAgent, ask_agent, local_agents, oplog_service
from tidemark.embedded.state import SparkMode, State
from tidemark.settings import Settings

pytestmark = pytest.mark.unit

FILE = """
name: {name}
source: {{kafka: {{topics: [{name}], format: oplog}}}}
agent: {agent}
writers: [{{name: objects, kind: collection, envelope: oplog, keyspace: {name}}}]
"""


def test_agents_are_those_of_the_pipeline_files(tmp_path):
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    for name, agent in (("shop", "{}"), ("bank", "{listen: 127.0.0.1:9000}")):
        (folder / f"{name}.yaml").write_text(FILE.format(name=name, agent=agent))
    settings = Settings.read({"TIDEMARK_ROOT": str(tmp_path), "TIDEMARK_OPLOG_PORT": "8999"})
    assert local_agents(settings) == [LocalAgent("bank", 9000), LocalAgent("shop", 8999)]


def test_agents_belong_to_the_usual_services_where_there_are_some(settings, agents):
    usual = usual_services(settings, SparkMode.LOCAL)
    assert usual == ["kafka", "cassandra", "airflow"]
    agents.append(LocalAgent("shop", 9))
    assert usual_services(settings, SparkMode.LOCAL) == [*usual, "oplog"]


def test_an_agent_that_is_asked_for_and_not_declared_is_refused(settings, monkeypatch, tmp_path):
    java = Java(tmp_path / "java", 17, "17.0.1")
    monkeypatch.setattr("tidemark.embedded.lifecycle.find_java", lambda environ: java)
    with pytest.raises(NoAgentDeclared):
        up(settings, ["oplog"])


def test_an_agent_listens_on_its_port_and_uses_this_home(settings, agents):
    agents.append(LocalAgent("shop", 9))
    (program,) = oplog_service(settings, State()).programs
    assert (program.name, program.port) == ("oplog-shop", 9)
    assert program.command[-2:] == ("--listen", "127.0.0.1:9")
    assert program.environ["TIDEMARK_HOME"] == str(settings.home)


@pytest.fixture
def answering() -> Iterator[tuple[int, list[int]]]:
    """A server whose answers have the status that a test chooses; its port, and that status."""
    status = [200]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status[0])
            self.end_headers()
            self.wfile.write(b"said")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, status
        server.shutdown()
        thread.join()


def test_an_agent_is_well_when_it_says_so(answering):
    port, status = answering
    assert ask_agent(port) is None
    status[0] = 503
    assert ask_agent(port) == "503: said"


def test_an_agent_that_does_not_answer_is_told():
    assert ask_agent(1).startswith("ConnectionRefusedError")


def test_oplog_alone_means_the_log_of_the_first_agent(settings):
    with pytest.raises(NoLog):
        log_file(settings, "oplog")
    (settings.home / "logs").mkdir(parents=True)
    for name in ("shop", "bank"):
        (settings.home / "logs" / f"oplog-{name}.log").touch()
    assert log_file(settings, "oplog").name == "oplog-bank.log"
    assert log_file(settings, "oplog-shop").name == "oplog-shop.log"
