"""Advice about damaged tables: whether a rebuild from the log would be complete, and the alternatives.

A damaged keyspace is never repaired in place: a new one is filled from the log. Where the log lacks a part of
a partition, the new keyspace would lack it too. The advice then names what is missing, and other ways to
repair the damage. Pure.
"""

from tidemark.verification.journal.provable import Ground

MOST_NAMED = 3


def find_gap(ground: Ground, unclear_below: int = 0) -> str:
    """What the log lacks of the partitions that a writer delivers; empty where it lacks nothing.

    Below the id ``unclear_below`` the log was compacted by another policy than `journal`; 0 where it was not.
    """
    gaps = [
        f"it begins at offset {start} of {topic}/{partition}"
        for (topic, partition), start in sorted(ground.starts.items())
        if start > 0
    ]
    gaps += [
        f"offsets of {topic}/{partition} below {upper} were lost"
        for (topic, partition), upper in sorted(ground.lost.items())
    ]
    gaps += [
        f"the offsets of {topic}/{partition} began anew" for topic, partition in sorted(ground.begun_anew)
    ]
    if unclear_below:
        gaps.append(f"another policy than `journal` has compacted it below id {unclear_below}")
    more = f", and {len(gaps) - MOST_NAMED} more" if len(gaps) > MOST_NAMED else ""
    return ", ".join(gaps[:MOST_NAMED]) + more


def way_out(pipeline: str, writer: str, gap: str) -> str:
    """What an operator can do about tables that differ from the log."""
    if not gap:
        return (
            "Tables are not repaired in place: rebuild them with a writer of another keyspace and "
            "`start: earliest` (docs/verification.md), or open it all the same: "
            f"tidemark gate open {pipeline} {writer}"
        )
    return (
        f"Tables are not repaired in place, and the log is not whole ({gap}), so a keyspace rebuilt from it "
        "would be without what is missing. Possible are: restore the tables from a backup and verify again "
        f"(tidemark resume {pipeline} {writer}); have the other replicator restore them, and take over again "
        "(docs/migration.md); or look at what is different (tidemark journal history), and open the gate "
        f'with a reason: tidemark gate open {pipeline} {writer} --execute --reason "…"'
    )
