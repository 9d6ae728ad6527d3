"""Differences and comparisons of two keyspaces in one line each."""

from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.verification.diff import Diff, Side
from tidemark.verification.tally import Counts


def missing(key: str, seq_nr: int, topic: str = "orders") -> Difference:
    return Difference(DifferenceKind.ROW_MISSING, topic, key, seq_nr=seq_nr)


def side(keyspace: str, offset: int | None = 5, position: int = 9, gate: str | None = None) -> Side:
    return Side(keyspace, f"w_{keyspace}", position, gate, {} if offset is None else {("orders", 0): offset})


def diff(old: Side, new: Side, *differences: Difference, moved: tuple[str, ...] = ()) -> Diff:
    topics = {"orders": Counts(same=3, different=len(differences))}
    return Diff("p", old, new, topics, differences, len(differences), moved)
