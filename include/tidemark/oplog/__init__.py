"""OpLog: agents that take operations in and stream them out, their consumers, and synchronisation."""
