"""``tidemark oplog``: the group of its commands."""

import typer

from tidemark.cli.oplog.sync import sync, syncs

app = typer.Typer(no_args_is_help=True)
app.command()(sync)
app.command()(syncs)
