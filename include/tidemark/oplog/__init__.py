"""OpLog: agents that take and stream operations, clients that follow them, synchronisation with dumps."""
