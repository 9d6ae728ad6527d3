"""``tidemark oplog``: operations by hand, and the agent: send, follow, serve, look, synchronise.

Each command is a module of its own; this one only lists them.
"""

import typer

from tidemark.cli.oplog.send import send
from tidemark.cli.oplog.serve import serve
from tidemark.cli.oplog.status import status
from tidemark.cli.oplog.sync import sync, syncs
from tidemark.cli.oplog.tail import tail

app = typer.Typer(help="Operations on objects: send, follow, serve, synchronise.", no_args_is_help=True)
app.command()(send)
app.command()(tail)
app.command()(serve)
app.command()(status)
app.command()(sync)
app.command()(syncs)
