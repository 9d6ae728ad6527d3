"""Submits a Spark application as the Airflow operators do, and measures its time."""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.jars.ivy import pyspark_folder
from tidemark.settings import Settings


@dataclass(frozen=True)
class Submitted:
    """One application, from spark-submit's start to its end."""

    seconds: float
    answer: dict[str, Any]
    """What the application wrote into the file named by its last argument."""


def submit(application: Path, *arguments: str, java_options: str, memory: str = "1g") -> Submitted:
    settings = Settings.read()
    jars = ",".join(str(jar) for jar in ensure_jars(settings, only="spark").spark)
    command = [str(pyspark_folder() / "bin" / "spark-submit"), "--master", "local[2]", "--jars", jars]
    command += ["--driver-memory", memory, "--driver-java-options", java_options]
    environ = {**os.environ, "SPARK_HOME": str(pyspark_folder()), "PYSPARK_PYTHON": sys.executable}
    environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        began = time.monotonic()
        done = subprocess.run(
            [*command, str(application), *arguments, str(answer)], env=environ, capture_output=True, text=True
        )
        seconds = time.monotonic() - began
        if done.returncode:
            sys.exit(f"{application.name} failed:\n{done.stderr[-4000:]}")
        return Submitted(seconds, json.loads(answer.read_text()) if answer.exists() else {})
