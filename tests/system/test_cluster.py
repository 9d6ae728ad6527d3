"""The same DAG on a Spark standalone cluster: nothing depends on one process."""

import json
import urllib.request
from typing import Any

import pytest
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
