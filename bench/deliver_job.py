"""One way to copy the messages of a log into Parquet files; submitted by ``bench/deliver.py``.

bare: Spark's own reader and writer over the same files. delivered: as ``spark_apps/deliver.py`` does it, to a
``files`` writer. Each answers with the seconds of the work itself.
"""

import json
import sys
import time
from functools import partial
from pathlib import Path

from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.captured import Captured
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl
from tidemark.spark.jobs.deliver import write_parts_with
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter


def main(way: str, root: str, binding: str, out: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.config("spark.ui.enabled", "false")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .getOrCreate()
    )
    log, positions = open_log(root, Binding.from_json(binding))
    began = time.monotonic()
    if way == "bare":
        spark.read.parquet(f"{root}/files").write.parquet(out)
    else:
        declared = FilesDeclaration(name="archive", kind="files", path=out)
        writer, write_parts = FilesWriter("bench", declared), write_parts_with(spark)
        delivered = deliver_to(
            writer,
            log,
            positions,
            "bench",
            write_parts,
            limit=10**9,
            reload=partial(positions.load, writer.name),
        )
        assert delivered.gate is None, delivered.gate
    Path(answer).write_text(json.dumps({"seconds": time.monotonic() - began}))
    spark.stop()


def open_log(root: str, binding: Binding) -> tuple[PublishedLog, Positions]:
    """The captured files, published in a control plane of this process."""
    control, folder = LogControl(MemoryConsensus(), "bench"), LogFolder("bench", root)
    control.add_binding(control.bindings_head(), binding)
    assert isinstance(folder.read_captured(binding.t), Captured)
    publish(control, folder, binding, 10**12, binding.t)
    return PublishedLog.open(control, root), Positions(MemoryConsensus(), "bench")


if __name__ == "__main__":
    main(*sys.argv[1:])
