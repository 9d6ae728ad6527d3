"""The clients of a journal: append to it and read it, independent of the state of its replication.

``Journal`` blocks, ``AsyncJournal`` does not. Actions go to Kafka and nowhere else; Cassandra is only read.
"""
