"""What a Python worker of Spark says about itself. Imports nothing of the library before it is asked."""

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa

PROBE = "file string, pid long, parent long"


def probe(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where the worker's library comes from, and which process it is."""
    import tidemark

    for batch in batches:
        for _ in range(batch.num_rows):
            found = {"file": [str(tidemark.__file__)], "pid": [os.getpid()], "parent": [os.getppid()]}
            yield pa.RecordBatch.from_pydict(found)
