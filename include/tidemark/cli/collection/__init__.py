"""``tidemark collection``: reads collections, shows their readers and pins times."""
