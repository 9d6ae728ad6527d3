"""``tidemark oplog``: its commands, and what their arguments mean."""
