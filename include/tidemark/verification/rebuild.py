"""What a rebuild from the log could not bring back, and what is possible instead.

Pure. A damaged keyspace is never repaired in place; the log fills another one next to it. Where the log does
not have a partition whole, such a keyspace would be without what is missing: then nothing else than that is
promised, and the other ways are named.
"""

from tidemark.verification.journal.provable import Ground

MOST_NAMED = 3


def find_gap(ground: Ground, unclear_below: int = 0) -> str:
    """What the log does not have of the partitions that a writer takes; empty where it has everything.

    Below an id it may have been compacted by another policy than `journal`.
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
    """What can be done about tables that are not what the log says."""
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
