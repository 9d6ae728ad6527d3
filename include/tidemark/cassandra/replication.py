"""The replication of a keyspace, and the default for one that is created without a declared replication.

The default is three copies where a data centre has at least three nodes, else one. An existing keyspace is
never changed: a warning names the problem and the statement that fixes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cassandra.cluster import Session
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy

WANTED = 3
"""Copies by default, and the nodes that a data centre needs for them."""
_REPLICATION = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
SIMPLE, BY_CENTRE = "SimpleStrategy", "NetworkTopologyStrategy"


@dataclass(frozen=True, slots=True)
class Copies:
    """A keyspace's replication: its strategy and the factors."""

    strategy: str
    factors: Mapping[str, int]
    """By data centre; the one key ``replication_factor`` for a simple strategy."""

    @property
    def options(self) -> dict[str, str]:
        """The map that CQL takes."""
        return {"class": self.strategy, **{name: str(count) for name, count in self.factors.items()}}

    def in_centre(self, centre: str) -> int:
        """The copies in one data centre; the one factor of a simple strategy counts for every centre."""
        return self.factors.get(centre, self.factors.get("replication_factor", 0))


ONE_COPY = Copies(SIMPLE, {"replication_factor": 1})


def create_keyspace(keyspace: str, copies: Copies) -> str:
    """The statement that creates a keyspace. An existing one keeps its replication."""
    factors = "".join(f", '{place}': {count}" for place, count in copies.factors.items())
    replication = f"{{'class': '{copies.strategy}'{factors}}}"
    return f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}"


def default_copies(centre: str | None, nodes: int) -> Copies:
    """The replication of a keyspace without a declared one, with so many nodes in the data centre."""
    if nodes < WANTED:
        return ONE_COPY
    if centre is None:
        return Copies(SIMPLE, {"replication_factor": WANTED})
    return Copies(BY_CENTRE, {centre: WANTED})


def warning_about(keyspace: str, copies: Copies, centre: str | None, nodes: int) -> str | None:
    """The problem of a keyspace with so many copies on so many nodes; None if there is none."""
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
    """The session's data centre, and how many nodes the driver knows there."""
    metadata = session.cluster.metadata
    centre = _local_centre(session)
    hosts = [host for host in metadata.all_hosts() if centre is None or host.datacenter == centre]
    return centre, len(hosts)


def read_copies(session: Session, keyspace: str) -> Copies | None:
    """The replication of a keyspace; None if it does not exist."""
    row = session.execute(_REPLICATION, (keyspace,)).one()
    return None if row is None else copies_of(dict(row.replication))


def copies_of(options: Mapping[str, str]) -> Copies:
    """Parse the replication map of ``system_schema.keyspaces``."""
    # A factor with transient copies is written as "3/1".
    factors = {name: int(count.split("/")[0]) for name, count in options.items() if name != "class"}
    return Copies(options["class"].rsplit(".", 1)[-1], factors)


def too_few_copies(session: Session, keyspace: str) -> str | None:
    """The problem with a keyspace's replication on its cluster; None if there is none."""
    copies = read_copies(session, keyspace)
    return None if copies is None else warning_about(keyspace, copies, *local_nodes(session))


def _local_centre(session: Session) -> str | None:
    """The connection's data centre; else that of the driver's control connection."""
    policy = session.cluster.profile_manager.default.load_balancing_policy
    if isinstance(policy, TokenAwarePolicy):
        policy = policy._child_policy
    if isinstance(policy, DCAwareRoundRobinPolicy) and policy.local_dc:
        return str(policy.local_dc)
    host = session.cluster.get_control_connection_host()
    return None if host is None else host.datacenter
