"""The load of compaction's measurements: lives of nine appends and a delete, many entities at a time."""

from dataclasses import dataclass

from journal_load import EVENT, HEADER, PAYLOAD, log_table  # isort: skip

from tidemark.consensus.objects import Consensus
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.log.files.parquet import LogFolder, write_parquet
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl

NAME, TOPIC, WRITER = "bench", "bench", "writer"
PARTITIONS = 8
MESSAGES_A_LIFE = 10
"""Nine appends, and a delete of all of them: two of the ten stay."""
ALIVE = 10_000
"""Entities whose lives run side by side: an entity's messages are that far from each other."""
MESSAGES_A_BINDING = 250_000
SEGMENT_BYTES = 32_000_000
DELETE = b'{"delete":{"to":%d}}'
BEGAN = 2 * 10**15

Sent = tuple[bytes, bytes, bytes | None]


@dataclass(frozen=True)
class Lives:
    """The messages of entities that each get nine appends and a delete."""

    messages: int

    def between(self, first: int, last: int) -> dict[int, list[Sent]]:
        """Key, header and value of the messages from ``first`` up to ``last``, by partition."""
        found: dict[int, list[Sent]] = {partition: [] for partition in range(PARTITIONS)}
        for number in range(first, last):
            generation, place = divmod(number, ALIVE * MESSAGES_A_LIFE)
            turn, entity = divmod(place, ALIVE)
            seq_nr, key = turn + 1, f"order-{generation:04d}-{entity:06d}"
            if seq_nr == MESSAGES_A_LIFE:
                found[entity % PARTITIONS].append((key.encode(), DELETE % (seq_nr - 1), None))
                continue
            payload = PAYLOAD % (key, number * 2654435761, number % 900, entity, seq_nr, number % 1_000_000)
            header, value = HEADER % (seq_nr, seq_nr), EVENT % (seq_nr, payload)
            found[entity % PARTITIONS].append((key.encode(), header.encode(), value.encode()))
        return found


def make_log(root: str, lives: Lives, consensus: Consensus) -> None:
    """The lives as a published log whose writer has finished with it; one more binding is active."""
    control, folder = LogControl(consensus, NAME), LogFolder(NAME, root)
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    for number, first in enumerate(range(0, lives.messages, MESSAGES_A_BINDING)):
        last = min(first + MESSAGES_A_BINDING, lives.messages)
        rows = lives.between(first, last)
        _publish(control, folder, BEGAN + number * 10**10, rows, offsets, SEGMENT_BYTES)
    one_more = {0: [(b"last", b'{"mark":{"id":"m"}}', None)]}
    binding = _publish(control, folder, BEGAN + 10**15, one_more, offsets, segment_bytes=1)
    control.advance_upper(control.bindings_head(), binding.t + 10**12)
    positions = Positions(consensus, NAME)
    state = positions.register(WRITER, {})
    positions.commit(state, binding.end, OffsetEntry(OffsetEntryKind.COMMIT, binding.end, binding.t, NAME))


def _publish(
    control: LogControl,
    folder: LogFolder,
    t: int,
    rows: dict[int, list[Sent]],
    offsets: dict[int, int],
    segment_bytes: int,
) -> Binding:
    slices = tuple(
        Slice(TOPIC, p, offsets[p], offsets[p] + len(own)) for p, own in sorted(rows.items()) if own
    )
    binding = Binding(t, control.log_head().end + 1, slices, f"bench-{t}")
    control.add_binding(control.bindings_head(), binding)
    area, captured = folder.new_area(t), []
    for s in slices:
        keys, headers, values = zip(*rows[s.partition], strict=True)
        offsets[s.partition] = s.upper
        table = log_table(binding, s, keys, headers, values)
        path = f"{area}/{s.partition}.parquet"
        write_parquet(folder.area_at(path), table.to_batches())
        captured.append(folder.adopt_file(binding, [s], path))
    folder.remove_area(area)
    rows_read = sum(len(own) for own in rows.values())
    found = Captured(t, tuple(one for one in captured if one), rows_read=rows_read)
    folder.write_captured(found)
    folder.write_audit(AuditRecord(t, found.digest, ()))
    publish(control, folder, binding, segment_bytes, t)
    return binding
