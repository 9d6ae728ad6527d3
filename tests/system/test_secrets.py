"""A password that Kafka asks for (SASL over TLS) reaches its clients, and turns up nowhere else."""

import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.system.conftest import MARKER
from tests.system.test_replicate import NOW, status_of

from tidemark.embedded.sample_orders import sample_actions

pytestmark = pytest.mark.system


class CommandLines(threading.Thread):
    """Looks at every process of the machine until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.seen: set[str] = set()

    def run(self) -> None:
        while not self.stopped.wait(0.05):
            for process in psutil.process_iter(["cmdline"]):
                self.seen.add(" ".join(process.info["cmdline"] or []))


def files_with(marker: str, folder: Path) -> list[Path]:
    wanted = marker.encode()
    return [path for path in folder.rglob("*") if path.is_file() and wanted in path.read_bytes()]


def test_a_password_is_in_no_command_line_log_xcom_or_template(services: Any) -> None:
    services.create_topic("marked")
    services.send("marked", list(sample_actions(50, 4, NOW)))
    watch = CommandLines()
    watch.start()

    run_id = services.replicate("marked")

    watch.stopped.set()
    watch.join()
    submitted = [line for line in watch.seen if "spark_apps/capture.py" in line]
    assert submitted, "the run was over before anybody looked"
    assert not [line for line in watch.seen if MARKER in line]
    assert {writer.lag for writer in status_of(services, "marked").writers} == {0}
    # The home holds Airflow's logs, its database (XComs, rendered templates) and what Spark left. Only the
    # broker's own configuration has the password, because it is the one who asks for it.
    found = files_with(MARKER, services.settings.home)
    assert {path.name for path in found} == {"further.properties", "server.properties"}
    assert list(Path("/tmp").glob("tidemark-*")) == []
    for task in ("capture", "deliver"):
        assert MARKER not in str(services.airflow.returned("marked.replicate", run_id, task))
