"""``tidemark work``: its commands, and what their arguments mean."""
