"""What every read of one collection shares: its output, its readers in the control plane, and its rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.session import CassandraUnreachable
from tidemark.client.collection.errors import CollectionUnreadable
from tidemark.client.collection.output_view import OutputView
from tidemark.client.collection.rendition_rows import RenditionRows, Renditions
from tidemark.log.bindings.door import Bindings
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.reading import check_readable
from tidemark.outputs.state.reader_lease import TERM, ReaderLease
from tidemark.outputs.state.reader_store import ReaderStore


@dataclass(frozen=True)
class OpenedCollection:
    """One collection.

    Attributes:
        view: Its output.
        readers: Its readers.
        renditions: Its rows.
        who: The name of this reader, for messages to others.
        term: How long a reader that does not renew keeps its times, in µs.
    """

    view: OutputView
    readers: ReaderStore
    renditions: Renditions
    who: str
    term: int = TERM

    @property
    def name(self) -> tuple[str, str]:
        """The pipeline and the writer."""
        return self.view.store.pipeline, self.view.store.writer

    @property
    def bindings(self) -> Bindings:
        """The bindings of the log."""
        return self.view.progress.bindings

    def since(self) -> int:
        """The first time that a new reader may ask for."""
        with self.asking():
            return max(self.readers.load().since, self.view.recent().since)

    def frontier(self) -> int:
        """The first time that cannot be read yet."""
        with self.asking():
            return self.view.advanced().frontier

    def rows_at(self, lease: ReaderLease, t: int) -> RenditionRows:
        """The rows to read the state at a time from.

        Raises ReaderExpired, Forgotten, NotYet, or Tainted where waiting does not help.
        """
        output, now = self.view.covering(t), self.readers.clock()
        return self.renditions.rows_of(check_readable(output, lease.check(), t, now))

    @contextmanager
    def asking(self, lease: ReaderLease | None = None) -> Iterator[None]:
        """Raise ``CollectionUnreadable`` where Cassandra does not answer; ``ReaderExpired`` where what was
        read may have been removed during the read."""
        try:
            yield
        except Exception as error:
            if lease is not None:
                lease.check()
            if isinstance(error, (CassandraUnreachable, *FAILURES)):
                reason = f"{type(error).__name__}: {error}"
                raise CollectionUnreadable(*self.name, reason) from error
            raise


def newest_time(output: Output) -> int:
    """The newest readable time; where there is none, one that is refused with the reason."""
    return max(output.frontier - 1, output.since)
