"""Consensus keeps its contract on real Cassandra, and agrees with the model when answers get lost."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.support.contracts.consensus_contract import ConsensusContract
from tests.support.contracts.consensus_machine import check_against_model
from tests.support.contracts.flaky_session import FlakyLightweight

from tidemark.consensus.lightweight import LightweightConsensus, create_schema

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def keyspace(services: Any) -> Iterator[str]:
    name = f"contract_{uuid4().hex[:8]}"
    create_schema(services.session, {"class": "SimpleStrategy", "replication_factor": "1"}, name)
    yield name
    services.session.execute(f"DROP KEYSPACE {name}")


@pytest.fixture(scope="module")
def consensus(services: Any, keyspace: str) -> LightweightConsensus:
    return LightweightConsensus(services.session, keyspace)


class TestLightweightConsensus(ConsensusContract):
    """With this module's ``consensus``: one keyspace for all, every test has objects of its own."""


def test_the_model_agrees_whatever_gets_lost(services: Any, keyspace: str):
    flaky = FlakyLightweight(services.session, keyspace)
    check_against_model(lambda: flaky, examples=12, steps=12)
