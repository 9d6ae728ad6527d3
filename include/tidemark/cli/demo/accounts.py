"""The part of ``make demo`` about a collection: a transform that was wrong, corrected in a second rendition.

The first call delivers with the file as it was before its correction, in this process, so that there is
something to correct. Then Airflow builds the rendition of today's file, compares it and hands readers over.
Later calls replicate further changes and show the same moment again.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from random import Random
from typing import Any, cast

from tidemark.app.expectations import pipeline_suite
from tidemark.app.follow.rounds import Rounds
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cli.demo.airflow import DemoFailed, run_until
from tidemark.client.collection.collection import Collection
from tidemark.connections import Connections
from tidemark.delivery.transforms.skip import Skip, SkippedAs
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.kafka.producer import RecordToSend, send_all
from tidemark.log.files.parquet import LogFolder
from tidemark.log.kafka_records import RecordReader
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline.connections import Lookup
from tidemark.pipeline.model import Pipeline, source_topics
from tidemark.spark.jobs.follow import round_tools
from tidemark.writers.collection.kind import CollectionDeclaration

PIPELINE, WRITER = "accounts", "accounts"
REPLICATE_DAG, REBUILD_DAG = f"{PIPELINE}.replicate", f"{PIPELINE}.rebuild"
ACCOUNTS, CHANGES = 60, 240
CLOSED = "account-07"
"""An account that is closed by the last document of the first batch."""
PATIENCE = 60.0


def sample_accounts(batch: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Documents of accounts by key, the same for the same batch. The last one closes an account."""
    random = Random(batch)
    closing_one = CLOSED if batch == 0 else f"account-{(batch + 7) % ACCOUNTS:02d}"
    for number in range(CHANGES):
        key = f"account-{number % ACCOUNTS:02d}"
        yield key, _account(key, "open", Decimal(random.randint(0, 999_999)) / 100)
    yield closing_one, _account(closing_one, "closed", Decimal(0))


def _account(key: str, status: str, balance: Decimal) -> dict[str, Any]:
    return {"owner": f"owner of {key}", "status": status, "balance": str(balance)}


def first_version(pipeline: Pipeline) -> Pipeline:
    """The pipeline as its file was before the correction: closed accounts are dropped and not deleted."""
    (declared,) = pipeline.writers
    writer = cast("CollectionDeclaration", declared)
    transforms = tuple(
        one.model_copy(update={"then": SkippedAs.DROP}) if isinstance(one, Skip) else one
        for one in writer.transforms
    )
    return pipeline.model_copy(update={"writers": (writer.model_copy(update={"transforms": transforms}),)})


def account_lines(
    pipeline: Pipeline, connections: Connections, api: AirflowApi, look_up: Lookup, batch: int
) -> list[str]:
    """Send a batch, correct the collection where that was not done yet; returns what readers see."""
    sent = _send(pipeline, connections, batch)
    outputs = OutputStore(OpenPipeline(pipeline, connections).consensus, PIPELINE, WRITER)
    if outputs.load() is None:
        _deliver_here(first_version(pipeline), connections)
    else:
        run_until(api, REPLICATE_DAG, "check_writers", {})
    if len(outputs.require().handovers) == 1:
        reason = "closed accounts stayed as they last were"
        conf = {"writer": WRITER, "reason": reason, "dry_run": False, "approve": "automatic"}
        run_until(api, REBUILD_DAG, "hand_over", conf)
    output = outputs.require()
    lines = [f"\nCollection {PIPELINE}: {sent} documents of {ACCOUNTS} accounts."]
    return [*lines, *_shown(output, output.handovers[-1], look_up)]


def _send(pipeline: Pipeline, connections: Connections, batch: int) -> int:
    (topic,) = pipeline.source.kafka.topics
    records = [
        RecordToSend(topic, key.encode(), json.dumps(document).encode(), (), None)
        for key, document in sample_accounts(batch)
    ]
    send_all(connections.kafka, iter(records), PATIENCE, as_java=True, compression="lz4")
    return len(records)


def _deliver_here(pipeline: Pipeline, connections: Connections) -> None:
    """One run in this process: so few messages need no Spark."""
    isolation = source_topics(pipeline).isolation
    folder = LogFolder(PIPELINE, pipeline.log.path)
    with closing(RecordReader(connections.kafka, isolation)) as reader:
        tools = round_tools(
            _no_engine,
            reader,
            connections.kafka,
            isolation,
            folder,
            pipeline_suite(pipeline),
            connections.control,
        )
        with closing(Rounds.open(OpenPipeline(pipeline, connections), "make demo", tools)) as rounds:
            done = rounds.whole()
    if done.failures or done.closed:
        raise DemoFailed(f"{PIPELINE}: nothing was delivered: {'; '.join(done.failures or done.closed)}")


def _no_engine() -> Any:
    raise DemoFailed(f"{PIPELINE}: a few documents are not delivered by Spark. See: make status")


def _shown(output: Output, handover: Handover, look_up: Lookup) -> Iterator[str]:
    h, key = handover.h, {"id": CLOSED}
    with Collection(PIPELINE, WRITER, look_up=look_up, who="make demo") as collection:
        before, after = collection.get(key, at=h - 1), collection.get(key, at=h)
        rows = sum(batch.num_rows for batch in collection.rows())
    active = output.active
    yield f"  {CLOSED} was closed. The first transform dropped that document, so readers kept seeing it open."
    yield f"  rendition {active.number} has the corrected transform: {active.place}, from {h} on"
    yield f"  get {CLOSED} right before: {_told(before)}"
    yield f"  get {CLOSED} from then on: {_told(after)}"
    yield f"  {rows} accounts are open now"
    yield f"  .venv/bin/tidemark renditions {PIPELINE}      renditions of the collection, and who handed over"
    yield f"  .venv/bin/tidemark collection get {PIPELINE} {WRITER} {CLOSED} --at {h - 1}"


def _told(row: dict[str, Any] | None) -> str:
    return "none" if row is None else f"{row['status']}, balance {row['balance']}, {row['owner']}"
