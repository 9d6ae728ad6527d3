"""Spark Connect: one server that stays up and runs the applications' queries, on this machine only.

A process that can reach it can run code as its user, so it listens on the loopback address and requires a
token. The token is in files that only their owner can read; no command line or environment has it.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tidemark.connections import SECRET_NAMES, SECRET_OPTIONS, SECRET_TEXTS
from tidemark.embedded.errors import FirstUseFailed
from tidemark.embedded.files import filled, write_atomically
from tidemark.embedded.home import OWNER_ONLY
from tidemark.embedded.jars.class_archive import archive_option
from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.jars.ivy import pyspark_folder
from tidemark.embedded.java import Java
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.service import Program, Service
from tidemark.settings import Settings

HEAP = "2g"
HOST = "localhost"
"""PySpark sends a token without TLS to this host name only."""
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_NOT_INHERITED = ("AIRFLOW", "SPARK_", "PYSPARK_")
"""Variables of the caller's shell that are no business of the server; the first may hold secrets."""


def spark_connect_service(settings: Settings, java: Java, jars: Jars, heap: str = HEAP) -> Service:
    """The Connect server of this home, ready to be started."""
    folder, port = settings.home / "spark", settings.spark_port
    options = folder / "connect.conf"

    def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(OWNER_ONLY)
        shutil.rmtree(folder / "tmp", ignore_errors=True)  # of a server that was killed
        (folder / "tmp").mkdir()
        write_atomically(folder / "connect-log4j2.properties", filled("spark-connect-log4j2.properties"))
        lines = server_options(settings, java, jars, heap, ensure_token(settings))
        text = "".join(f"{name} {_escaped(value)}\n" for name, value in lines.items())
        write_atomically(options, text, mode=0o600)

    command = (str(pyspark_folder() / "bin" / "spark-submit"), "--properties-file", str(options))
    program = Program(
        name="spark-connect",
        title="Spark's Connect server",
        command=(*command, "--class", MAIN, "spark-internal"),
        environ=server_environment(settings, java, os.environ),
        cwd=settings.home,
        port=port,
        variable="TIDEMARK_SPARK_PORT",
    )
    return Service(
        name="spark",
        title="Spark",
        programs=(program,),
        prepare=prepare,
        question=lambda _: ask_connect(settings, port),
        deadline=120.0,
        address=f"sc://{HOST}:{port}",
        first_use=lambda: run_first_query(settings, port),
    )


def token_file(settings: Settings) -> Path:
    """The file with the token that the server requires."""
    return settings.home / "spark" / "token"


def ensure_token(settings: Settings) -> str:
    """The token of this home, made once, in a file with mode 0600."""
    path = token_file(settings)
    if not path.exists() or not path.read_text(encoding="utf-8").strip():
        write_atomically(path, secrets.token_urlsafe(32) + "\n", mode=0o600)
    path.chmod(0o600)
    return path.read_text(encoding="utf-8").strip()


def server_options(settings: Settings, java: Java, jars: Jars, heap: str, token: str) -> dict[str, str]:
    """The server's Spark properties."""
    folder = settings.home / "spark"
    logging = f"-Dlog4j2.configurationFile={(folder / 'connect-log4j2.properties').as_uri()}"
    memory = f"-XX:+ExitOnOutOfMemoryError -Djava.io.tmpdir={folder / 'tmp'}"
    return {
        "spark.master": "local[*]",
        "spark.app.name": "tidemark",
        "spark.driver.memory": heap,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.driver.extraJavaOptions": f"{archive_option(settings, java)} {memory} {logging}".strip(),
        "spark.jars": ",".join(str(jar) for jar in jars.spark),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(settings.spark_port),
        "spark.connect.authenticate.token": token,
        # Work that runs once an hour or so finds its session again, with everything that was set up in it.
        "spark.connect.session.manager.defaultSessionTimeout": "24h",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder / "tmp"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "tidemark_workers.daemon",
        "spark.redaction.regex": SECRET_NAMES,
        "spark.redaction.string.regex": SECRET_TEXTS,
        "spark.sql.redaction.options.regex": SECRET_OPTIONS,
        "spark.sql.redaction.string.regex": SECRET_TEXTS,
    }


def server_environment(settings: Settings, java: Java, given: Mapping[str, str]) -> dict[str, str]:
    """The server's environment, which its Python workers inherit."""
    root = str(settings.root)
    modules = [root, *(part for part in given.get("PYTHONPATH", "").split(":") if part not in ("", root))]
    return {
        **{name: value for name, value in given.items() if not name.startswith(_NOT_INHERITED)},
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(pyspark_folder()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": ":".join(modules),
        "TIDEMARK_ROOT": root,
        "TIDEMARK_HOME": str(settings.home),
        "TIDEMARK_TRANSFORMS": ":".join(settings.transform_packages),
    }


def ask_connect(settings: Settings, port: int) -> str | None:
    """Make a request with the token; None when the server has judged it, else the problem.

    It is a request without content, which changes nothing: the server refuses it after it has accepted the
    token.
    """
    import grpc

    token = token_file(settings).read_text(encoding="utf-8").strip() if token_file(settings).exists() else ""
    sent = grpc.access_token_call_credentials(token)
    credentials = grpc.composite_channel_credentials(grpc.local_channel_credentials(), sent)
    with grpc.secure_channel(f"{HOST}:{port}", credentials) as channel:
        try:
            channel.unary_unary("/spark.connect.SparkConnectService/ReleaseSession")(b"", timeout=5)
        except grpc.RpcError as error:
            unanswered = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
            if error.code() in unanswered:
                return f"{error.code().name}: {error.details()}"
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                return f"it refuses the token in {token_file(settings)}; restart it"
    return None


def run_first_query(settings: Settings, port: int) -> None:
    """Write and read a file with Spark, which loads in two seconds what every later query uses.

    Raises ``FirstUseFailed``.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.core import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    channel = DefaultChannelBuilder(f"sc://{HOST}:{port}")
    channel.set("token", token_file(settings).read_text(encoding="utf-8").strip())
    session = SparkSession(channel)
    session.client.set_retry_policies([DefaultPolicy(max_retries=2)])
    path = settings.home / "spark" / "tmp" / f"first-{secrets.token_hex(4)}"
    try:
        session.range(1).selectExpr("string(id)").write.text(str(path))
        session.read.text(str(path)).collect()
    except PySparkException as error:
        problem = str(error).splitlines()[0]
        log = settings.home / "logs" / "spark-connect.log"
        raise FirstUseFailed("Spark's Connect server", "query", problem, log) from error
    finally:
        session.stop()
        shutil.rmtree(path, ignore_errors=True)


def _escaped(value: str) -> str:
    """A value in a Java properties file."""
    return value.replace("\\", "\\\\")
