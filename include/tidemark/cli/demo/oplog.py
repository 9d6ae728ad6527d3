"""The part of ``make demo`` about operations: an agent, a consumer that is cut off, a replication, and a
synchronisation with a dump that repairs three objects.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tidemark.cli.demo.airflow import DemoFailed, run_until, wait
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.oplog.consumer.items import OpLogItem, OpLogLive, OpLogOperation, OpLogReset
from tidemark.oplog.consumer.oplog import OpLog
from tidemark.oplog.producer.lines import OperationLine, read_lines
from tidemark.oplog.producer.udp_sender import UdpSender
from tidemark.oplog.sync.report import report_line

PIPELINE = "oplog"
REPLICATE_DAG, SYNC_DAG = f"{PIPELINE}.replicate", f"{PIPELINE}.sync"
OBJECTS, OPERATIONS, BEFORE_THE_CUT = 40, 100, 60
WITHIN = 60.0
"""Seconds that the demo waits for an operation."""

Copy = dict[str, OpLogOperation]


def sample_operations() -> Iterator[OperationLine]:
    """A hundred operations on forty videos: inserts, updates, and four deletes at the end."""
    lines = []
    for number in range(OPERATIONS):
        event = "insert" if number < OBJECTS else "delete" if number >= OPERATIONS - 4 else "update"
        video = {"event": event, "type": "video", "id": f"x{number % OBJECTS:02d}"}
        lines.append(json.dumps({**video, "parents": [f"user/{number % 7}"]}).encode())
    return read_lines(lines)


def oplog_lines(api: AirflowApi, address: tuple[str, int], home: Path) -> list[str]:
    """Run this part; returns what to print about it."""
    for dag_id in (REPLICATE_DAG, SYNC_DAG):
        wait(partial(api.has_dag, dag_id), 120, f"Airflow does not know {dag_id}")
    folder = home / "demo"
    folder.mkdir(exist_ok=True)
    url = f"http://{address[0]}:{address[1]}"
    lines = [f"\nOperations, pipeline {PIPELINE}, agent at {url}:"]
    copy: Copy = {}
    lines += _cut_off(url, address, folder / "consumer.position", copy)
    run_until(api, REPLICATE_DAG, "deliver", {})
    replica = _replicate(url)
    lines.append(f"  a full replication sent {len(replica)} objects")
    if {key: one.parents for key, one in replica.items()} != {key: one.parents for key, one in copy.items()}:
        raise DemoFailed(f"{PIPELINE}: the consumer's copy differs from the replication. See: make status")
    lines += _synchronise(api, url, folder, replica)
    lines.append(f"  .venv/bin/tidemark oplog tail {PIPELINE}      what happens from now on")
    return lines


def _cut_off(url: str, address: tuple[str, int], state_file: Path, copy: Copy) -> Iterator[str]:
    """A consumer that takes a part of the operations, is cut off, and comes back for the rest."""
    operations = list(sample_operations())
    state_file.unlink(missing_ok=True)  # of an earlier call: a consumer without one begins with every object
    with UdpSender(*address) as sender:
        with OpLog(url, state_file=state_file) as oplog:
            _until_live(oplog, copy)
            for line in operations[:BEFORE_THE_CUT]:
                sender.send(line)
            first = _take(oplog, copy, BEFORE_THE_CUT)
        for line in operations[BEFORE_THE_CUT:]:
            sender.send(line)
    with OpLog(url, state_file=state_file) as oplog:
        rest = _take(oplog, copy, len(operations) - BEFORE_THE_CUT)
    yield f"  {sender.sent} operations were sent by UDP"
    yield f"  a consumer took {first} of them and was cut off; it came back and got the other {rest}"


def _take(oplog: OpLog, copy: Copy, wanted: int) -> int:
    """Apply so many operations to the copy; returns how many there were."""
    taken = 0
    for item in oplog:
        taken += isinstance(item, OpLogOperation)
        _apply(copy, item)
        oplog.done(item)
        if taken == wanted:
            break
    return taken


def _until_live(oplog: OpLog, copy: Copy) -> None:
    """Apply what comes until the consumer has every object."""
    for item in oplog:
        _apply(copy, item)
        oplog.done(item)
        if isinstance(item, OpLogLive):
            break


def _apply(copy: Copy, item: OpLogItem) -> None:
    if isinstance(item, OpLogReset):
        copy.clear()
    elif isinstance(item, OpLogOperation):
        if item.event == "delete":
            copy.pop(item.key, None)
        else:
            copy[item.key] = item


def _replicate(url: str) -> Copy:
    """Every object there is."""
    copy: Copy = {}
    with OpLog(url, last_event_id="0") as oplog:
        _until_live(oplog, copy)
    return copy


def _synchronise(api: AirflowApi, url: str, folder: Path, replica: Mapping[str, Any]) -> Iterator[str]:
    """A dump in which one object is new, one has changed and one is gone; the consumer is told of each."""
    start = datetime.now(UTC)
    rows = [
        {"type": one.type, "id": one.id, "timestamp": one.timestamp.isoformat(), "parents": one.parents}
        for one in replica.values()
    ]
    changed = {**rows[1], "parents": ["user/of-the-dump"]}
    missed = {
        "type": "video",
        "id": f"only-in-the-dump-{start:%H%M%S}",
        "timestamp": (start - timedelta(seconds=1)).isoformat(),
    }
    dump = folder / "dump.ndjson"
    texts = (json.dumps(row) for row in [changed, *rows[2:], {**missed, "parents": []}])
    dump.write_text("".join(f"{text}\n" for text in texts))
    conf = {"dump": str(dump), "start": start.isoformat(), "dry_run": False, "reason": "make demo"}
    run_id = run_until(api, SYNC_DAG, "report", conf)
    report = api.returned(SYNC_DAG, run_id, "report")
    repaired = _differences(replica, _replicate(url))
    yield f"  {SYNC_DAG} compared them with a dump that differs in three objects"
    yield f"  {report_line(report)}"
    yield f"  a replication afterwards differs in: {', '.join(repaired)}"
    if len(repaired) != 3:
        raise DemoFailed(f"{PIPELINE}: {len(repaired)} objects were repaired instead of 3: {repaired}")


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Sequence[str]:
    """The objects that are new, gone or changed."""
    keys = sorted(before.keys() | after.keys())
    return [key for key in keys if _state(before.get(key)) != _state(after.get(key))]


def _state(one: OpLogOperation | None) -> Any:
    return None if one is None else (one.timestamp, one.parents)
