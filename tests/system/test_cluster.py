"""The same DAG with an application for each task: in a standalone cluster, and alone."""

import json
import urllib.request
from typing import Any

import pytest
from tests.support.services.command_lines import command_lines
from tests.support.services.marked_connections import MARKER
from tests.support.services.replicated_journal import NOW, events_in_cassandra, readable_events, status_of

from tidemark.cli.demo.orders import sample_actions

pytestmark = pytest.mark.system


def test_replicate_runs_on_a_cluster_of_two_workers(services: Any) -> None:
    actions = list(sample_actions(400, 3, NOW))
    services.create_topic("clustered", partitions=4)
    services.send("clustered", actions)

    services.replicate("clustered")

    assert events_in_cassandra(services, "clustered") == readable_events(actions)
    assert {writer.position for writer in status_of(services, "clustered").writers} == {399}
    port = services.state.ports["spark.master_ui"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/") as answer:
        master = json.load(answer)
    finished = {(app["name"], app["state"]) for app in master["completedapps"]}
    assert finished >= {("clustered.capture", "FINISHED"), ("clustered.deliver", "FINISHED")}


def test_replicate_runs_in_applications_of_their_own(services: Any) -> None:
    actions = list(sample_actions(300, 4, NOW))
    services.create_topic("submitted", partitions=2)
    services.send("submitted", actions)

    with command_lines() as seen:
        run_id = services.replicate("submitted")

    assert events_in_cassandra(services, "submitted") == readable_events(actions)
    summary = services.airflow.returned("submitted.replicate", run_id, "check_writers")
    assert (summary["engine"]["kind"], summary["engine"]["address"]) == ("application", "local[2]")
    assert [line for line in seen if "spark_apps/capture.py" in line], "no look came in time"
    assert not [line for line in seen if MARKER in line]
