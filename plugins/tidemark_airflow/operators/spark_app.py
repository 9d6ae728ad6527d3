"""Run an application of ``spark_apps/`` and return the summary that it wrote.

The Spark connection decides how. With a Spark Connect server (``sc://…``) the application runs in the task's
own process and uses the server; with every other master, spark-submit starts it. Connections are handed over
in a file that only this user can read and that is removed when the task ends. No command line, log, XCom or
rendered template ever holds a secret.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemark.settings import Settings
from tidemark_airflow.connections import engine_connections, look_up
from tidemark_airflow.failures import ApplicationFailed, ApplicationStopped
from tidemark_airflow.submitted import end_application

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.connections import SparkConnection


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
        self._runs_here = False
        self._summary = ""
        """The path of the running application's summary, which only its processes have among their
        arguments."""

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """Run it and read the summary; the application's own error becomes the task's error."""
        with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
            summary, connections = Path(folder, "summary.json"), Path(folder, "connections.json")
            engine = self.find_engine()
            self.hand_over_connections(connections)
            self.application_args = [
                *(self.application_args or ()),
                *("--connections", str(connections), "--summary", str(summary)),
            ]
            try:
                if engine.is_connect:
                    self._run_here()
                else:
                    self._equip()
                    self._summary = str(summary)
                    super().execute(context)
            except AirflowException as error:
                said = json.loads(summary.read_text()) if summary.exists() else {}
                failure = AirflowFailException if said.get("needs_person") else ApplicationFailed
                raise failure(said.get("error") or str(error)) from None
            result: dict[str, Any] = json.loads(summary.read_text())
        self.log.info("%s", json.dumps(result, indent=1))
        return result

    def find_engine(self) -> "SparkConnection":
        """The engine that this task's Spark connection names."""
        from airflow.sdk.log import mask_secret

        from tidemark.connections import SparkConnection

        engine = SparkConnection.from_airflow(self._conn_id, look_up(self._conn_id))
        if engine.token:
            mask_secret(engine.token.get_secret_value())
        return engine

    def hand_over_connections(self, path: Path) -> None:
        """Write the connections that the application needs."""
        from tidemark.pipeline.loader import find_pipeline

        engine_connections(find_pipeline(self.pipeline)).write(path)

    def on_kill(self) -> None:
        """Stop the application. Called by Airflow's handler of SIGTERM.

        One that spark-submit has started may finish what it is doing, as one in this process may; its own
        exit code then ends the task.
        """
        if not self._runs_here:
            if self._summary:
                submitted = self._hook._submit_sp if self._hook else None
                end_application(self._summary, submitted.pid if submitted else None)
            super().on_kill()
            return
        from tidemark.spark.engine import interrupt_open_sessions

        interrupt_open_sessions()
        raise ApplicationStopped("The task was stopped. What was finished stays finished.")

    def _run_here(self) -> None:
        """Call the application's ``main`` in this process. Its errors are output, as everything it prints."""
        main = _main_of(Path(str(self.application)))
        self._runs_here = True
        try:
            with redirect_stderr(sys.stdout):  # Airflow shows what is written to stderr as errors
                code = main(list(self.application_args or ()))
        finally:
            self._runs_here = False
        if code:
            raise AirflowException(f"{self.name} ended with code {code}")

    def _equip(self) -> None:
        """Set everything that spark-submit needs beside the application's arguments."""
        from tidemark.embedded.jars.class_archive import driver_java_options
        from tidemark.embedded.jars.fetch import ensure_jars

        settings = Settings.read()
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


def _main_of(path: Path) -> Callable[[list[str]], int]:
    """The ``main`` of an application's file."""
    name = f"spark_apps.{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[list[str]], int] = module.main
    return main


def _package_folder(name: str) -> Path:
    """The folder of a package, without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed in {sys.executable}; install requirements.txt")
    return Path(spec.origin).parent
