"""Groups rows by their replicas, from the driver's token map, which is read once per version.

Where the driver has no map of a keyspace, all rows are one group.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from cassandra.metadata import Metadata

Replicas = frozenset[Any]
"""Hosts of the driver."""


@dataclass(frozen=True, slots=True)
class _Ring:
    token_map: Any
    hosts: Any
    """The map that this was read from: the driver replaces it when the cluster changes."""
    ends: list[Any]
    replicas: list[Replicas]

    def is_current(self, token_map: Any, keyspace: str) -> bool:
        return self.token_map is token_map and self.hosts is token_map.tokens_to_hosts_by_ks.get(keyspace)


class ReplicaSets:
    """The replicas of routing keys."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._rings: dict[str, _Ring] = {}

    def of(self, keyspace: str, routing_key: bytes) -> Replicas:
        """The replicas of the partition with this key; empty where the driver does not know them."""
        token_map = self._metadata.token_map
        if token_map is None:
            return frozenset()
        ring = self._rings.get(keyspace)
        if ring is None or not ring.is_current(token_map, keyspace):
            ring = self._rings[keyspace] = _read(token_map, keyspace)
        if not ring.replicas:
            return frozenset()
        # A token is the end of its range; keys above the last token belong to the first.
        place = bisect_left(ring.ends, token_map.token_class.from_key(routing_key).value)
        return ring.replicas[place % len(ring.replicas)]


def _read(token_map: Any, keyspace: str) -> _Ring:
    # A query for any token makes the driver build the keyspace's map.
    if token_map.ring:
        token_map.get_replicas(keyspace, token_map.ring[0])
    hosts = token_map.tokens_to_hosts_by_ks.get(keyspace)
    if not hosts:
        return _Ring(token_map, hosts, [], [])
    known: dict[Replicas, Replicas] = {}
    replicas = [frozenset(hosts[token]) for token in token_map.ring]
    return _Ring(
        token_map,
        hosts,
        [token.value for token in token_map.ring],
        [known.setdefault(group, group) for group in replicas],
    )
