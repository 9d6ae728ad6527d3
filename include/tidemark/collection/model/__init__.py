"""From messages to the rows of a collection. Pure: no I/O, no clock, no Cassandra."""
