"""``tidemark journal``: the commands about a pipeline's journal in Kafka and Cassandra."""

import typer

from tidemark.cli.journal import client, expired, take_over, verify

app = typer.Typer(help="Journals in Cassandra.", no_args_is_help=True)
for command in (
    verify.verify,
    verify.diff,
    verify.history,
    expired.expired,
    take_over.hand_back,
    take_over.check,
    take_over.take_over,
    client.append,
    client.delete,
    client.purge,
    client.read,
    client.pointer,
):
    app.command()(command)
