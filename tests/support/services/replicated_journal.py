"""A pipeline that a DAG has replicated: its status, and what readers of its journal must see and do see."""

from typing import Any

from tidemark.connections import Connections
from tidemark.consensus.control_plane import look_at_control
from tidemark.delivery.status import PipelineStatus, read_status
from tidemark.journal.action import Action, Append, Delete, Purge
from tidemark.journal.codec.payload import decode
from tidemark.pipeline.loader import find_pipeline

NOW = 1_794_000_000_000


def status_of(services: Any, pipeline: str) -> PipelineStatus:
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    return read_status(find_pipeline(pipeline), look_at_control(connections))


def readable_events(actions: list[Action]) -> dict[str, set[int]]:
    """What a reader of each entity must see, told by the actions alone and by the simplest means."""
    entities: dict[str, set[int]] = {}
    for action in actions:
        numbers = entities.setdefault(action.key, set())
        match action:
            case Append():
                numbers |= {event.seq_nr for event in decode(action.form, action.payload).events}
            case Delete():
                numbers -= set(range(1, action.to + 1))
            case Purge():
                numbers.clear()
    return {key: numbers for key, numbers in entities.items() if numbers}


def events_in_cassandra(services: Any, keyspace: str) -> dict[str, set[int]]:
    entities: dict[str, set[int]] = {}
    for row in services.session.execute(f"SELECT id, seq_nr FROM {keyspace}.journal"):
        entities.setdefault(row.id, set()).add(row.seq_nr)
    return entities
