"""What a writer would make of a record, tried before it is sent.

A record that a journal writer cannot take stops the replication of its whole topic. So an append goes through
the writer's own steps first: it is written and read back, decoded, folded and turned into the cells that
Cassandra gets. Sends nothing and asks nothing; what depends on the entity's head is looked at elsewhere.
"""

from tidemark.journal.action import Append
from tidemark.journal.codec.record import read_action, write_action
from tidemark.journal.effect import Message
from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.fold import Fold
from tidemark.journal_tables.cells import row_cells

MOST_OF_A_ROW = 15 * 2**20
"""Bytes. Cassandra takes 16 MiB at once by default, and needs some for itself. Kafka may take far more: its
own limit counts what is compressed."""


def rehearse(topic: str, action: Append) -> None:
    """Refuse an append that would stop a writer: ``Unwritable`` says why."""
    record = write_action(action)
    try:
        if read_action(record.key, record.value, record.timestamp, 0, record.headers) != action:
            raise Unwritable("readers would take it for something else than was said")
        fold = Fold(topic, action.key, None)
        fold.apply(Message(0, 0, 0, 0, action.timestamp * 1000, action))
    except Undecodable as error:
        raise Unwritable(error.reason) from None
    for row in fold.effect().rows:
        if (size := len(row_cells(row))) > MOST_OF_A_ROW:
            problem = f"event {row.seq_nr} takes {size} bytes in Cassandra, and {MOST_OF_A_ROW} is the most"
            raise Unwritable(problem)
