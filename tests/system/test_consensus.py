"""Consensus keeps its contract on real Cassandra."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.contract.consensus_contract import ConsensusContract

from tidemark.consensus.lightweight import LightweightConsensus, create_schema

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def consensus(services: Any) -> Iterator[LightweightConsensus]:
    keyspace = f"contract_{uuid4().hex[:8]}"
    create_schema(services.session, {"class": "SimpleStrategy", "replication_factor": "1"}, keyspace)
    yield LightweightConsensus(services.session, keyspace)
    services.session.execute(f"DROP KEYSPACE {keyspace}")


class TestLightweightConsensus(ConsensusContract):
    """With this module's ``consensus``: one keyspace for all, every test has objects of its own."""
