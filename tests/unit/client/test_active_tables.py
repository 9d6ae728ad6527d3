"""Which tables a journal of a pipeline is read from: those of the active rendition, through handovers."""

from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.support.output_samples import sides, signed

from tidemark.cassandra.driver import InvalidRequest, NoHostAvailable
from tidemark.client.errors import TablesUnreadable
from tidemark.client.journal import Journal
from tidemark.client.settings import settings_of
from tidemark.client.tables import active_tables
from tidemark.client.tables.active_tables import ASKED_AGAIN_AFTER, ActiveTables
from tidemark.consensus.memory import MemoryConsensus
from tidemark.outputs.model.handover import ConsumerStanding, advance_frontier, hand_over, roll_back
from tidemark.outputs.model.lifecycle import RenditionProposal, declare
from tidemark.outputs.settings import settings_of as settings_of_writer
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline.loader import find_pipeline

pytestmark = pytest.mark.unit

ORDERS = """
name: sales
source: {kafka: {topics: [sales]}}
writers:
  - {name: tables, kind: journal, keyspace: journal, segment_size: 500}
"""
OPEN = ConsumerStanding(1_000, is_gate_open=True)


class Orders:
    """A pipeline with a journal of two renditions, of which the second has another segment size."""

    def __init__(self) -> None:
        self.consensus = MemoryConsensus()
        self.store = OutputStore(self.consensus, "sales", "tables")
        self.now = 0.0
        self.error: Exception | None = None
        self.asked = 0

    def register(self) -> None:
        declared = find_pipeline("sales").writers[0]
        settings = settings_of_writer(declared, {})
        self.store.create(RenditionProposal(settings, "journal", 0, signed(1)))
        other = {**settings, "writer": {**settings["writer"], "segment_size": 900}}
        second = RenditionProposal(other, "journal_r2", 0, signed(2))
        self.store.change(lambda output: advance_frontier(declare(output, second), 1, 10))

    def hand_over(self) -> None:
        self.store.change(lambda output: hand_over(output, 2, OPEN, sides(), signed(3), force=True))

    def look(self, control: Any) -> MemoryConsensus:
        self.asked += 1
        if self.error:
            raise self.error
        return self.consensus

    def open(self) -> ActiveTables:
        settings = settings_of("sales", None, None, look_up)
        return ActiveTables(
            "sales", settings.cassandra, settings.declared, settings.ask_active, lambda: self.now
        )


def look_up(name: str) -> dict[str, Any]:
    if name.startswith("kafka"):
        return {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    return {"conn_type": "cassandra", "host": "127.0.0.1"}


@pytest.fixture
def orders(tmp_path, monkeypatch) -> Orders:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "sales.yaml").write_text(ORDERS)
    monkeypatch.setenv("TIDEMARK_PIPELINES", str(folder))
    found = Orders()
    monkeypatch.setattr(active_tables, "look_at_cluster", found.look)
    return found


def keyspace_of(tables: ActiveTables) -> str:
    return tables.now("a").tables._journal.keyspace  # type: ignore[attr-defined]


def test_a_journal_that_was_never_delivered_is_where_the_file_says(orders):
    tables = orders.open()
    assert (keyspace_of(tables), tables.now("a").segment_size) == ("journal", 500)


def test_readers_move_to_the_new_rendition_within_ten_seconds_and_back(orders):
    orders.register()
    tables = orders.open()
    old = tables.now("a")
    assert keyspace_of(tables) == "journal"
    orders.hand_over()
    orders.now = ASKED_AGAIN_AFTER - 0.1
    assert tables.now("b") == old
    assert orders.asked == 1
    orders.now = ASKED_AGAIN_AFTER
    assert (keyspace_of(tables), tables.now("a").segment_size) == ("journal_r2", 900)
    orders.store.change(lambda output: roll_back(output, 1, ConsumerStanding(2_000, True), signed(4)))
    orders.now *= 2
    assert (keyspace_of(tables), tables.now("a").segment_size) == ("journal", 500)


def test_a_control_plane_that_does_not_answer_leaves_readers_where_they_are(orders):
    orders.register()
    tables = orders.open()
    orders.error = NoHostAvailable("no host", {})
    with pytest.raises(TablesUnreadable, match="the active rendition"):
        tables.now("a")
    orders.error = None
    before = tables.now("a")
    orders.error, orders.now = NoHostAvailable("no host", {}), ASKED_AGAIN_AFTER
    with capture_logs() as logs:
        assert tables.now("a") == before
    assert [one["log_level"] for one in logs] == ["warning"]


def test_a_user_who_may_not_read_the_control_plane_reads_what_the_file_says(orders):
    orders.error = InvalidRequest("no such table")
    with capture_logs() as logs:
        assert keyspace_of(orders.open()) == "journal"
    assert [one["topic"] for one in logs] == ["sales"]


def test_a_read_keeps_its_tables_and_the_next_one_takes_the_new_ones(orders):
    orders.register()
    settings = settings_of("sales", None, None, look_up)
    with Journal.of_settings(settings) as journal:
        journal._tables._clock = lambda: orders.now  # type: ignore[attr-defined]
        first = journal._reader("a")
        assert journal._reader("b") is first
        orders.hand_over()
        orders.now = 1e9
        second = journal._reader("a")
        assert second is not first
        assert (first._segment_size, second._segment_size) == (500, 900)


def test_a_journal_without_a_pipeline_asks_no_control_plane(orders):
    settings = settings_of("sales", None, None, look_up)
    tables = ActiveTables("sales", settings.cassandra, settings.declared, None)
    assert keyspace_of(tables) == "journal"
    assert orders.asked == 0
