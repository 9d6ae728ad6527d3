"""Item 24: three copies where there are nodes for them; one copy there is warned about."""

from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.policies import DCAwareRoundRobinPolicy, RoundRobinPolicy, TokenAwarePolicy
from tests.support.contracts.work_world import given_declaration

from tidemark.cassandra.replication import (
    Copies,
    copies_of,
    default_copies,
    local_nodes,
    too_few_copies,
    warning_about,
)
from tidemark.work.store.tables import copies_of as work_copies

pytestmark = pytest.mark.unit

ONE, THREE = {"replication_factor": 1}, {"replication_factor": 3}


@pytest.mark.parametrize(
    ("centre", "nodes", "options"),
    [
        ("dc1", 1, {"class": "SimpleStrategy", "replication_factor": "1"}),
        ("dc1", 2, {"class": "SimpleStrategy", "replication_factor": "1"}),
        ("dc1", 3, {"class": "NetworkTopologyStrategy", "dc1": "3"}),
        ("dc1", 12, {"class": "NetworkTopologyStrategy", "dc1": "3"}),
        (None, 1, {"class": "SimpleStrategy", "replication_factor": "1"}),
        (None, 3, {"class": "SimpleStrategy", "replication_factor": "3"}),
    ],
)
def test_what_a_keyspace_gets_that_nothing_is_declared_for(centre, nodes, options):
    assert default_copies(centre, nodes).options == options


@pytest.mark.parametrize(
    ("copies", "nodes", "is_warned_about"),
    [
        (Copies("SimpleStrategy", ONE), 1, False),
        (Copies("SimpleStrategy", ONE), 2, False),
        (Copies("SimpleStrategy", ONE), 3, True),
        (Copies("SimpleStrategy", THREE), 3, False),
        (Copies("NetworkTopologyStrategy", {"dc1": 1}), 3, True),
        (Copies("NetworkTopologyStrategy", {"dc1": 1, "dc2": 3}), 3, True),
        (Copies("NetworkTopologyStrategy", {"dc1": 2}), 3, False),
        (Copies("NetworkTopologyStrategy", {"dc2": 1}), 3, False),
    ],
)
def test_when_too_few_copies_are_warned_about(copies, nodes, is_warned_about):
    assert (warning_about("work", copies, "dc1", nodes) is not None) == is_warned_about


def test_the_warning_says_what_to_do():
    said = warning_about("work", Copies("SimpleStrategy", ONE), "dc1", 3)
    assert "3 nodes of dc1" in said
    assert "ALTER KEYSPACE work WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': '3'}" in said
    assert said.endswith("nodetool repair --full work")


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        (
            {"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "1"},
            Copies("SimpleStrategy", ONE),
        ),
        (
            {"class": "org.apache.cassandra.locator.NetworkTopologyStrategy", "dc1": "3/1", "dc2": "2"},
            Copies("NetworkTopologyStrategy", {"dc1": 3, "dc2": 2}),
        ),
    ],
)
def test_replication_as_cassandra_has_it(options, copies):
    assert copies_of(options) == copies


def given_session(policy: Any, replication: dict[str, str] | None, *centres: str) -> Any:
    hosts = [SimpleNamespace(datacenter=centre) for centre in centres]
    cluster = SimpleNamespace(
        metadata=SimpleNamespace(all_hosts=lambda: hosts),
        profile_manager=SimpleNamespace(default=SimpleNamespace(load_balancing_policy=policy)),
        get_control_connection_host=lambda: hosts[0],
    )
    row = None if replication is None else SimpleNamespace(replication=replication)
    answer = SimpleNamespace(one=lambda: row)
    return SimpleNamespace(cluster=cluster, execute=lambda query, values: answer)


SIMPLE_ONE = {"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "1"}


def test_nodes_are_counted_in_the_connection_s_data_centre():
    policy = TokenAwarePolicy(DCAwareRoundRobinPolicy("dc2"))
    session = given_session(policy, SIMPLE_ONE, "dc1", "dc2", "dc2", "dc2")
    assert local_nodes(session) == ("dc2", 3)
    assert "3 nodes of dc2" in too_few_copies(session, "work")


def test_without_one_it_is_that_of_the_node_that_was_connected_to():
    session = given_session(TokenAwarePolicy(RoundRobinPolicy()), SIMPLE_ONE, "dc1", "dc2", "dc2", "dc2")
    assert local_nodes(session) == ("dc1", 1)
    assert too_few_copies(session, "work") is None


def test_of_a_keyspace_that_is_not_there_nothing_is_said():
    session = given_session(TokenAwarePolicy(RoundRobinPolicy()), None, "dc1", "dc1", "dc1")
    assert too_few_copies(session, "work") is None


@pytest.mark.parametrize(
    ("declared", "options"),
    [
        ({}, {"class": "NetworkTopologyStrategy", "dc1": "3"}),
        ({"replication": {"replication_factor": 1}}, {"class": "SimpleStrategy", "replication_factor": "1"}),
    ],
)
def test_i24_a_work_journal_keeps_what_it_declares(declared, options):
    session = given_session(TokenAwarePolicy(RoundRobinPolicy()), None, "dc1", "dc1", "dc1")
    assert work_copies(session, given_declaration(**declared)).options == options
