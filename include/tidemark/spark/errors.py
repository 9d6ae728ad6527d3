"""Errors of the engine that runs Spark: not there, lost, of another version, or refusing this client."""

from tidemark.errors import TidemarkError, with_fields


class EngineError(TidemarkError):
    """Spark cannot be used. Nothing is wrong with the data, a target or the log."""


@with_fields
class EngineUnavailable(EngineError):
    """No Spark Connect server answers, or the one that answered is gone or was restarted. A retry finds it
    back as soon as it runs again.
    """

    address: str
    problem: str

    text = (
        "The Spark engine {address} {problem}. What was finished stays finished; a retry does the rest. "
        "If it stays like this, start it (embedded services: tidemark services up) and look at its log "
        "(tidemark services logs spark)."
    )


@with_fields
class CodeChanged(EngineError):
    """The library's files are not those any more that this process has loaded. A retry loads the new ones."""

    loaded: str
    found: str

    text = (
        "The files of Tidemark were changed since this process started (digest {found} instead of {loaded}), "
        "so Spark's tasks would run other code than it. Nothing was started. A retry runs the new version; a "
        "program that stays open must be started again."
    )


@with_fields
class EngineRefusedToken(EngineError):
    """The Spark Connect server does not accept this client's token."""

    needs_person = True

    address: str

    text = (
        "The Spark engine {address} refuses the token of this client. Nothing was started. Put the server's "
        "token into the password of the Spark connection; the embedded server's own is used when "
        "AIRFLOW_CONN_SPARK_DEFAULT is not set."
    )


@with_fields
class EngineMismatch(EngineError):
    """Client and server are different versions of Spark."""

    needs_person = True

    address: str
    server: str
    client: str

    text = (
        "The Spark engine {address} runs Spark {server}, but this client has PySpark {client}. Nothing was "
        "started. Restart the engine with this installation's PySpark (embedded services: tidemark services "
        "down --only spark, then up), or install the engine's version here."
    )


@with_fields
class PathNotShared(EngineError):
    """A path of a pipeline is not the same folder for the engine as for its client."""

    needs_person = True

    address: str
    pipeline: str
    path: str
    problem: str

    text = (
        "{pipeline}: {path} is not the same folder for the Spark engine {address}: {problem}. Nothing was "
        "captured or delivered. Mount the same file system under the same path for Airflow and for "
        "Spark, or set log.path to a location that both can reach, such as s3://…"
    )
