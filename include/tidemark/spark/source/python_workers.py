"""Check early that the Python which Spark starts for tasks can run this library.

Spark starts ``python3`` unless ``PYSPARK_PYTHON`` (or ``spark.pyspark.python``) says otherwise, which is
rarely the driver's own. Only the driver's machine is checked, where schemas and plans are made in such
processes too; the nodes of a cluster are not.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tidemark.spark.source.errors import WorkersRefused

NEEDED = ("tidemark", "cassandra", "pyarrow", "numpy", "pydantic")
_PATIENCE = 60.0
_QUESTION = (
    "import importlib.util as u, json, sys; "
    "print(json.dumps([sys.version_info[:2], [n for n in sys.argv[1:] if u.find_spec(n) is None]]))"
)


def check_workers() -> None:
    """Refuse the Spark application of this process if its Python processes cannot run the data source.

    The Python of a Connect server is not this process's to find; Spark itself refuses another version.
    """
    from pyspark import SparkFiles

    sent = [str(path) for path in sorted(Path(SparkFiles.getRootDirectory()).iterdir())]
    refuse_unable(os.environ.get("PYSPARK_PYTHON", "python3"), sent)


def refuse_unable(worker: str, sent: Sequence[str] = ()) -> None:
    """Refuse a Python that is another version than this one or lacks what the source needs.

    ``sent``: files that Spark puts on the path of its processes.
    """
    if problem := _problem(worker, sent):
        raise WorkersRefused(worker, sys.executable, problem)


def _problem(worker: str, sent: Sequence[str]) -> str | None:
    found = shutil.which(worker)
    if found is None:
        return "there is no such program"
    # Not resolved: the python of a virtual environment is a link to one that has none of its packages.
    if Path(found).absolute() == Path(sys.executable).absolute():
        return None
    path = os.pathsep.join([*sent, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        answer = subprocess.run(
            [found, "-c", _QUESTION, *NEEDED],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            check=True,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"that does not run ({type(error).__name__})"
    version, missing = json.loads(answer.stdout)
    if tuple(version) != sys.version_info[:2]:
        mine = ".".join(map(str, sys.version_info[:2]))
        return f"that is Python {'.'.join(map(str, version))} where this driver is {mine}"
    return f"that has no {', '.join(missing)}" if missing else None
