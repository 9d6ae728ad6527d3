"""``make demo``: starts services, sends a few thousand actions, replicates them and shows the result.

A second call uses the running services: it sends another, smaller batch of orders and replicates that.
"""

import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tidemark.cassandra.session import connect, disconnect_all
from tidemark.cli import services
from tidemark.cli.connections import look_up
from tidemark.cli.demo import accounts
from tidemark.cli.demo.airflow import FINISHED, PURGE_DAG, DemoFailed, show_expiry, task_failures, wait
from tidemark.cli.demo.oplog import oplog_lines
from tidemark.cli.demo.orders import expired_order, sample_actions
from tidemark.cli.demo.work import work_lines
from tidemark.cli.output.tables import status_table
from tidemark.clock import wall_clock_millis
from tidemark.connections import Connections, KafkaConnection
from tidemark.consensus.control_plane import look_at_control
from tidemark.delivery.status import read_status
from tidemark.embedded.errors import ArchiveFailed
from tidemark.embedded.jars.class_archive import ensure_class_archive
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.airflow import passwords_file
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.embedded.state import SparkMode, State
from tidemark.errors import TidemarkError
from tidemark.journal.action import Action
from tidemark.journal.codec.record import write_action
from tidemark.kafka import topic_creation
from tidemark.kafka.consumer import READ_UNCOMMITTED
from tidemark.kafka.offsets import looking_at_topics
from tidemark.kafka.producer import RecordToSend, send_all
from tidemark.kafka.topic_shape import TopicShape
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import Pipeline
from tidemark.settings import Settings

PIPELINE = "orders"
DAG_ID = f"{PIPELINE}.replicate"
FIRST, AGAIN = 4000, 400
PARTITIONS = 3
STEPS = ("bind", "capture", "audit", "publish", "deliver")
console = Console()
show = partial(console.print, highlight=False, soft_wrap=True)


PATIENCE = 60.0


def send_actions(kafka: KafkaConnection, topic: str, actions: Iterable[Action]) -> None:
    """Send the actions in order; returns when all are acknowledged."""
    records = (_record_of(topic, action) for action in actions)
    send_all(kafka, records, PATIENCE, as_java=True, compression="lz4")


def _record_of(topic: str, action: Action) -> RecordToSend:
    key, value, timestamp, headers = write_action(action)
    return RecordToSend(topic, key, value, headers, timestamp)


def main() -> int:
    """Run the demo; returns the exit code."""
    began = time.monotonic()
    try:
        settings, pipeline = Settings.read(), find_pipeline(PIPELINE)
        start_services(settings)
        connections = collect_connections(pipeline, look_up)
        create_topics(pipeline, connections)
        with ThreadPoolExecutor(3) as beside, AirflowApi(settings) as api:
            let_dags_run(api, DAG_ID, PURGE_DAG)
            sent = send_orders(pipeline, connections)
            work = beside.submit(work_lines, look_up)
            collection = beside.submit(show_accounts, api)
            operations = beside.submit(oplog_lines, api, (LOOPBACK, settings.oplog_port), settings.home)
            follow(api, api.trigger(DAG_ID))
            show_summary(settings, pipeline, connections, sent)
            show_expiry(api, lambda: follow(api, api.trigger(DAG_ID)), show)
            for line in (*work.result(), *collection.result(), *operations.result()):
                show(line)
        console.print(f"All of this took {time.monotonic() - began:.0f} s.")
        return 0
    except TidemarkError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        disconnect_all()


def start_services(settings: Settings) -> None:
    """Start what does not run yet."""
    with ThreadPoolExecutor(1) as beside:
        # An application per task starts in half the time with the archive. A server that stays up starts
        # once: making the archive would take longer than it saves.
        is_needed = State.read(settings).spark is not SparkMode.CONNECT
        archive = beside.submit(ensure_class_archive, settings) if is_needed else None
        services.up(only="", spark=None)
        if archive and isinstance(failure := archive.exception(), ArchiveFailed):
            print(failure, file=sys.stderr)


def create_topics(pipeline: Pipeline, connections: Connections) -> None:
    """Make the pipeline's topics where they are missing."""
    shape = TopicShape(partitions=PARTITIONS, replication=1)
    topic_creation.create_topics(
        pipeline.name, connections.kafka, dict.fromkeys(pipeline.source.kafka.topics, shape)
    )


def send_orders(pipeline: Pipeline, connections: Connections) -> int:
    """Send a batch of actions, a larger one the first time; returns their number."""
    (topic,) = pipeline.source.kafka.topics
    before = count_records(connections.kafka, topic)
    count = AGAIN if before else FIRST
    now = wall_clock_millis()
    actions = [*sample_actions(count, batch=before, now=now), expired_order(before, now)]
    send_actions(connections.kafka, topic, actions)
    console.print(f"Sent {len(actions):,} actions to topic {topic} ({before:,} were there before).")
    return len(actions)


def count_records(kafka: KafkaConnection, topic: str) -> int:
    """How many records a topic ever had."""
    with looking_at_topics(kafka, READ_UNCOMMITTED) as looking:
        return sum(end for _, end in looking.offsets([topic]).values())


def show_accounts(api: AirflowApi) -> list[str]:
    """The part about a collection; see ``tidemark.cli.demo.accounts``."""
    pipeline = find_pipeline(accounts.PIPELINE)
    connections = collect_connections(pipeline, look_up)
    create_topics(pipeline, connections)
    for dag_id in (accounts.REPLICATE_DAG, accounts.REBUILD_DAG):
        wait(partial(api.has_dag, dag_id), 120, f"Airflow does not know {dag_id}")
    (topic,) = pipeline.source.kafka.topics
    batch = count_records(connections.kafka, topic)
    return accounts.account_lines(pipeline, connections, api, look_up, batch)


def let_dags_run(api: AirflowApi, *dag_ids: str) -> None:
    """Unpause DAGs and wait until no run of theirs is active, so that the demo's own runs find the work.

    Unpausing for the first time starts the run of the newest interval, a moment later.
    """
    for dag_id in dag_ids:
        wait(partial(api.has_dag, dag_id), 120, f"Airflow does not know {dag_id}")
    paused = [dag_id for dag_id in dag_ids if api.is_paused(dag_id)]
    for dag_id in paused:
        api.unpause(dag_id)
    for dag_id in paused:
        wait(partial(api.runs, dag_id), 60, f"{dag_id} has not been scheduled")
    for dag_id in dag_ids:
        wait(partial(_is_idle, api, dag_id), 300, f"{dag_id} is busy with earlier runs")


def _is_idle(api: AirflowApi, dag_id: str) -> bool:
    return not api.active_runs(dag_id)


def follow(api: AirflowApi, run_id: str, seconds: float = 900) -> None:
    """Show the run's tasks until it ends. Raises ``DemoFailed`` with the log of failed tasks."""
    deadline = time.monotonic() + seconds
    shown: dict[str, str | None] = {}
    console.print(f"{DAG_ID}, run {run_id}:", highlight=False, soft_wrap=True)
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            state = api.run(DAG_ID, run_id)["state"]
            tasks = {task.task_id: task.state for task in api.tasks(DAG_ID, run_id)}
            if tasks != shown:
                shown = tasks
                live.update(_run_table(tasks), refresh=True)
            if state in FINISHED:
                break
            if time.monotonic() > deadline:
                raise DemoFailed(f"{run_id} has not ended after {seconds:.0f} s. See: make status")
            time.sleep(0.5)
    if state == "failed":
        raise DemoFailed("\n".join(task_failures(api, DAG_ID, run_id)))
    if tasks.get("capture") == "skipped":
        console.print("A scheduled run was faster: it has taken the actions already.")


def show_summary(settings: Settings, pipeline: Pipeline, connections: Connections, sent: int) -> None:
    """Print what was replicated, and what to look at next."""
    status = read_status(pipeline, look_at_control(connections))
    console.print()
    console.print(status_table(status))
    session = connect(connections.control)
    for _, journal in pipeline.journals:
        rows = (
            session.execute(f"SELECT count(*) AS n FROM {journal.keyspace}.{journal.tables.journal}").one().n
        )
        heads = (
            session.execute(f"SELECT count(*) AS n FROM {journal.keyspace}.{journal.tables.metajournal}")
            .one()
            .n
        )
        console.print(
            f"Cassandra, keyspace {journal.keyspace}: {rows:,} events of {heads:,} orders are readable."
        )
    if any(writer.lag for writer in status.writers):
        raise DemoFailed(
            f"{sent} actions were sent, but not every writer is at the log's end. See: make status"
        )
    user = f"user admin, password in {passwords_file(settings)}"
    console.print(
        f"""
Look around:
  .venv/bin/tidemark status {PIPELINE}      positions of every writer
  .venv/bin/tidemark services status    what runs here
  bin/airflow dags list-runs {DAG_ID}
  http://{LOOPBACK}:{settings.airflow_port}/dags/{DAG_ID}   ({user})
Stop with: make down   (data stays)   Remove with: make clean""",
        highlight=False,
        soft_wrap=True,
    )


def _run_table(tasks: dict[str, str | None]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    colours = {"success": "green", "failed": "red", "running": "cyan", "skipped": "dim"}
    for step in STEPS:
        state = tasks.get(step) or "waiting"
        table.add_row(step, f"[{colours.get(state, 'white')}]{state}")
    return table


if __name__ == "__main__":
    sys.exit(main())
