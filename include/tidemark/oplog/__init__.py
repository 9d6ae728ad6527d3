"""OpLog: operations on objects, taken in by agents, streamed to consumers and synchronised with dumps."""
