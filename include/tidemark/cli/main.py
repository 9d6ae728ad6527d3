"""``tidemark``: the command line. It parses, calls and prints; DAG tasks call the same functions.

A ``TidemarkError`` is printed to stderr as one sentence, with exit code 1. A mistyped name or option changes
nothing, and nothing is destroyed without ``--execute``.
"""

import getpass
import sys
from collections.abc import Sequence

import typer

from tidemark.cli.collection.main import app as collection
from tidemark.cli.dead_letters import app as dead_letters
from tidemark.cli.gate import app as gate
from tidemark.cli.journal.main import app as journal
from tidemark.cli.log.main import app as log
from tidemark.cli.offsets import app as offsets
from tidemark.cli.oplog.main import app as oplog
from tidemark.cli.options import Json, PipelineName, WriterName, print_json
from tidemark.cli.pipelines import app as pipelines
from tidemark.cli.renditions import app as renditions
from tidemark.cli.services import app as services
from tidemark.cli.status import status
from tidemark.cli.topics import app as topics
from tidemark.cli.verify import verify
from tidemark.cli.work.main import app as work
from tidemark.errors import TidemarkError

app = typer.Typer(
    name="tidemark",
    help="Keeps a journal that lives in Kafka durable and queryable in Cassandra.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(pipelines, name="pipelines", help="Pipelines: list them; forget one whose file is gone.")
app.command()(status)
app.add_typer(
    log, name="log", help="A pipeline's commit log: show, verify, accept, compact, pins, pin, unpin, sweep."
)
app.add_typer(offsets, name="offsets", help="Writers' positions: list, ack, rewind, forget, compact.")
app.add_typer(gate, name="gate", help="Writers' gates: show, stop, open.")
app.add_typer(
    renditions,
    name="renditions",
    help="Versions of a writer's output: list, build, verify, handover, rollback, abandon, retire.",
)
app.add_typer(
    dead_letters,
    name="dead-letters",
    help="Messages acknowledged without being written: list, show, redeliver.",
)
app.add_typer(
    journal,
    name="journal",
    help="Journals: append, read, verify, diff, history, expired, check, take-over, hand-back, …",
)
app.add_typer(collection, name="collection", help="Collections: get, rows, changes; readers, pin, unpin.")
app.add_typer(topics, name="topics", help="Kafka topics of a pipeline: create.")
app.add_typer(work, name="work", help="Work journals: insert, claim, done, dead letters, figures.")
app.add_typer(oplog, name="oplog", help="Operations on objects: send them to an agent, follow its stream.")
app.add_typer(services, name="services", help="Kafka, Cassandra, Spark and Airflow on this machine.")


@app.command()
def resume(pipeline: PipelineName, writer: WriterName, as_json: Json = False) -> None:
    """Redeliver to a stopped writer one message at a time; if that succeeds, its gate opens."""
    from tidemark.app.resume import resume as resume_writer
    from tidemark.cli.open_pipeline import open_pipeline

    holder = f"tidemark resume by {getpass.getuser()}"
    opened = open_pipeline(pipeline)
    resumed = resume_writer(opened, writer, holder, lambda line: typer.echo(line, err=as_json))
    if as_json:
        print_json({"pipeline": pipeline, "writer": writer, **resumed.to_dict()})
    elif resumed.gate is None:
        typer.echo(f"{pipeline}/{writer}: at id {resumed.position}; the gate is open.")
    else:
        typer.echo(
            f"{pipeline}/{writer}: still stopped at {resumed.gate.where}: {resumed.gate.reason}", err=True
        )
        for line in opened.advice(writer).lines[1:]:
            typer.echo(line, err=True)
    raise typer.Exit(1 if resumed.gate else 0)


app.command()(verify)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    try:
        app(args=None if argv is None else list(argv))
    except TidemarkError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    finally:
        if opened := sys.modules.get(
            "tidemark.cassandra.session"
        ):  # not loaded by a command without sessions
            opened.disconnect_all()


if __name__ == "__main__":
    main()
