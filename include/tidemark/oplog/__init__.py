"""OpLog: agents that take and stream operations, clients that follow them, and synchronisation with a dump."""
