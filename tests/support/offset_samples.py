"""Writers with an offset log in one line each: what the tests of its compaction start from."""

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import ObjectKey, ObjectKind
from tidemark.delivery.state.offset_log import compact_writer, plan_writer
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, OffsetEntry, OffsetEntryKind, WriterGate, WriterState

KEY = ObjectKey(ObjectKind.WRITER, "orders/c0")
STOPPED = WriterGate(Cause.MESSAGE, 8, 8, 15, "it makes no sense", at=5_000)
DEED = AuditEntry("compact offsets", "ann", "too long", 9_000)


def move(
    positions: Positions, state: WriterState, position: int, kind: OffsetEntryKind = OffsetEntryKind.COMMIT
) -> WriterState:
    entry = OffsetEntry(kind, position, 1_000, "run-1", namespaces={f"n{position % 3}": position})
    return positions.commit(state, position, entry, state.gate, state.lease)


def given_moves(positions: Positions, *moves: int, name: str = "c0") -> WriterState:
    """A writer that went to these positions, back where one is smaller."""
    state = positions.register(name, {"kind": "files"})
    for position in moves:
        back = position < state.position
        state = move(positions, state, position, OffsetEntryKind.REWIND if back else OffsetEntryKind.COMMIT)
    return state


def entries(positions: Positions, name: str = "c0") -> list[tuple[str, int]]:
    return [(entry.kind.value, entry.position) for entry in positions.history(name)]


def compact(positions: Positions, name: str = "c0") -> None:
    compact_writer(positions, plan_writer(positions, name))
