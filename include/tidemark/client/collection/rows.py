"""All rows of a collection as of one time, as a stream of Arrow batches. Memory holds a few of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Self

import pyarrow as pa

from tidemark.client.collection.ending import Ending
from tidemark.client.collection.errors import ReaderClosed
from tidemark.client.collection.opened import OpenedCollection, newest_time
from tidemark.outputs.reader_errors import Forgotten
from tidemark.outputs.state.reader_lease import ReaderLease, held_reader


class Rows(Iterator[pa.RecordBatch]):
    """The rows as of one time, in no order, read while they are consumed.

    It holds its time until it is read to its end or closed. A batch that was read after the end of its term
    is not returned: ``ReaderExpired`` is raised instead.

    Attributes:
        t: The time.
        schema: The columns of every batch.
    """

    def __init__(self, opened: OpenedCollection, t: int | None, schema: pa.Schema | None) -> None:
        self._name = opened.name
        stack = ExitStack()
        with opened.asking():
            when, lease = _registered(opened, t, stack)
            try:
                rows = opened.rows_at(lease, when)
                columns = rows.schema if schema is None else schema
            except BaseException:
                stack.close()
                raise
        self.t, self.schema = when, columns
        # Without a reference to this object: one that was forgotten unread gives its time up.
        self._batches = _batches(opened, lease, lambda: rows.rows(when, columns))
        self._ending = Ending(self, stack.close)

    def __next__(self) -> pa.RecordBatch:
        if self._ending.is_over:
            raise ReaderClosed(*self._name)
        try:
            return next(self._batches)
        except BaseException:
            self._ending.now()
            raise

    def read_all(self) -> pa.Table:
        """The rows that are left as one table, whole in memory."""
        return pa.Table.from_batches(self, self.schema)

    def close(self) -> None:
        """Give the time up. What is left is not read."""
        self._ending.now()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _registered(opened: OpenedCollection, t: int | None, stack: ExitStack) -> tuple[int, ReaderLease]:
    """A reader of a time, or of the newest one, and the time."""
    while True:
        output = opened.view.fresh() if t is None else opened.view.covering(t)
        when = newest_time(output) if t is None else t
        output.resolve(when)
        try:
            reader = held_reader(opened.readers, when, opened.who, opened.term)
            return when, stack.enter_context(reader)
        except Forgotten:
            if t is not None:
                raise
            # The newest time was forgotten before it was held: there is a newer one.


def _batches(
    opened: OpenedCollection, lease: ReaderLease, read: Callable[[], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    with opened.asking(lease):
        for batch in read():
            lease.check()
            yield batch
        lease.check()
