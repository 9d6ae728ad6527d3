"""A journal's clients: append to it, read it, whatever its replication is doing.

``Journal`` blocks, ``AsyncJournal`` does not. Actions go to Kafka and nowhere else; Cassandra is only read.
"""
