"""Submit an application of ``spark_apps/`` and return the summary that it wrote.

Connections are handed over in a file that only this user can read and that is removed when the task ends. No
command line, log, XCom or rendered template ever holds a secret.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemark.settings import Settings
from tidemark_airflow.connections import engine_connections
from tidemark_airflow.failures import ApplicationFailed

if TYPE_CHECKING:
    from airflow.sdk import Context


class SparkAppOperator(SparkSubmitOperator):
    """Runs ``spark_apps/<app>.py`` for one pipeline; returns its JSON summary."""

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "messages")

    def __init__(
        self, *, pipeline: str, app: str, arguments: Sequence[str] = (), messages: str = "0", **kwargs: Any
    ) -> None:
        super().__init__(
            application=str(Settings.read().root / "spark_apps" / f"{app}.py"),
            application_args=["--pipeline", pipeline, *arguments],
            name=f"{pipeline}.{app}",
            **kwargs,
        )
        self.pipeline = pipeline
        self.messages = messages
        """The number of messages to move, as far as it is known: it decides how much the JVM compiles."""

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """Submit, wait, and read the summary; the application's own error becomes the task's error."""
        with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
            summary, connections = Path(folder, "summary.json"), Path(folder, "connections.json")
            self._equip(summary, connections)
            try:
                super().execute(context)
            except AirflowException as error:
                said = json.loads(summary.read_text()) if summary.exists() else {}
                failure = AirflowFailException if said.get("needs_person") else ApplicationFailed
                raise failure(said.get("error") or str(error)) from None
            result: dict[str, Any] = json.loads(summary.read_text())
        self.log.info("%s", json.dumps(result, indent=1))
        return result

    def hand_over_connections(self, path: Path) -> None:
        """Write the connections that the application needs."""
        from tidemark.pipeline.loader import find_pipeline

        engine_connections(find_pipeline(self.pipeline)).write(path)

    def _equip(self, summary: Path, connections: Path) -> None:
        """Set everything that the application needs beside its own arguments."""
        from tidemark.embedded.jars.class_archive import driver_java_options
        from tidemark.embedded.jars.fetch import ensure_jars

        settings = Settings.read()
        self.hand_over_connections(connections)
        self.application_args = [
            *(self.application_args or ()),
            *("--connections", str(connections), "--summary", str(summary)),
        ]
        self.jars = ",".join(str(jar) for jar in ensure_jars(settings, only="spark").spark)
        java = driver_java_options(settings, int(self.messages))
        quiet = f"-Dlog4j2.configurationFile=file:{_package_folder('tidemark')}/spark/log4j2.properties"
        self.conf = {
            "spark.driver.extraJavaOptions": f"{java} {quiet}",
            # On a machine that has no such archive, Java goes on without it.
            "spark.executor.extraJavaOptions": java,
            **(self.conf or {}),
        }
        self.env_vars = {
            "TIDEMARK_ROOT": str(settings.root),
            "TIDEMARK_HOME": str(settings.home),
            "SPARK_HOME": str(_package_folder("pyspark")),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
            **(self.env_vars or {}),
        }


def _package_folder(name: str) -> Path:
    """The folder of a package, without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed in {sys.executable}; install requirements.txt")
    return Path(spec.origin).parent
