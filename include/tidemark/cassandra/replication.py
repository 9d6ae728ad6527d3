"""How many copies a keyspace has, and how many one gets whose declaration does not say.

Three on a cluster that can bear the loss of a node, one on a smaller one. A keyspace that is there is never
changed: what is wrong with it is said, with the statement that mends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cassandra.cluster import Session
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy

WANTED = 3
"""Copies, and the nodes in a data centre from which on there are as many."""
_REPLICATION = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
SIMPLE, BY_CENTRE = "SimpleStrategy", "NetworkTopologyStrategy"


@dataclass(frozen=True, slots=True)
class Copies:
    """A keyspace's replication: the name of its strategy and the factors."""

    strategy: str
    factors: Mapping[str, int]
    """By data centre; ``replication_factor`` where that is all there is."""

    @property
    def options(self) -> dict[str, str]:
        """As CQL has it."""
        return {"class": self.strategy, **{name: str(count) for name, count in self.factors.items()}}

    def in_centre(self, centre: str) -> int:
        """How many of them are in one data centre; the one factor of a simple strategy counts for all."""
        return self.factors.get(centre, self.factors.get("replication_factor", 0))


ONE_COPY = Copies(SIMPLE, {"replication_factor": 1})


def default_copies(centre: str | None, nodes: int) -> Copies:
    """What a keyspace gets that is created without a word about it, with so many nodes in the data centre."""
    if nodes < WANTED:
        return ONE_COPY
    if centre is None:
        return Copies(SIMPLE, {"replication_factor": WANTED})
    return Copies(BY_CENTRE, {centre: WANTED})


def warning_about(keyspace: str, copies: Copies, centre: str | None, nodes: int) -> str | None:
    """What is wrong with a keyspace of so many copies on so many nodes; None if nothing is."""
    held = copies.in_centre(centre) if centre is not None else max(copies.factors.values(), default=0)
    if nodes < WANTED or held != 1:
        return None
    place = f" of {centre}" if centre else ""
    options = ", ".join(
        f"'{name}': '{value}'" for name, value in default_copies(centre, nodes).options.items()
    )
    return (
        f"keyspace {keyspace} has one copy of everything although there are {nodes} nodes{place}: while one "
        f"node is down a part of it cannot be used, and if the node is lost, neither can the part ever be "
        f"again. Run: ALTER KEYSPACE {keyspace} WITH replication = {{{options}}}; then on every node: "
        f"nodetool repair --full {keyspace}"
    )


def local_nodes(session: Session) -> tuple[str | None, int]:
    """The data centre that the session works with, and how many nodes the driver knows there."""
    metadata = session.cluster.metadata
    centre = _local_centre(session)
    hosts = [host for host in metadata.all_hosts() if centre is None or host.datacenter == centre]
    return centre, len(hosts)


def read_copies(session: Session, keyspace: str) -> Copies | None:
    """How a keyspace is replicated; None if there is none of that name."""
    row = session.execute(_REPLICATION, (keyspace,)).one()
    return None if row is None else copies_of(dict(row.replication))


def copies_of(options: Mapping[str, str]) -> Copies:
    """A keyspace's replication as Cassandra's own tables have it."""
    # A factor with transient copies is written as "3/1".
    factors = {name: int(count.split("/")[0]) for name, count in options.items() if name != "class"}
    return Copies(options["class"].rsplit(".", 1)[-1], factors)


def too_few_copies(session: Session, keyspace: str) -> str | None:
    """What is wrong with how many copies a keyspace has on its cluster; None if nothing is."""
    copies = read_copies(session, keyspace)
    return None if copies is None else warning_about(keyspace, copies, *local_nodes(session))


def _local_centre(session: Session) -> str | None:
    """The one of the connection; else that of the node which tells the driver about the cluster."""
    policy = session.cluster.profile_manager.default.load_balancing_policy
    if isinstance(policy, TokenAwarePolicy):
        policy = policy._child_policy
    if isinstance(policy, DCAwareRoundRobinPolicy) and policy.local_dc:
        return str(policy.local_dc)
    host = session.cluster.get_control_connection_host()
    return None if host is None else host.datacenter
