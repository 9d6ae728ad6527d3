"""``tidemark oplog``: operations by hand: send them to an agent, follow its stream.

Each command is a module of its own; this one only lists them.
"""

import typer

from tidemark.cli.oplog.send import send
from tidemark.cli.oplog.tail import tail

app = typer.Typer(help="Operations on objects.", no_args_is_help=True)
app.command()(send)
app.command()(tail)
