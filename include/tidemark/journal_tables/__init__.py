"""kafka-journal's keyspace: its schema, its statements, and the encoding of rows and heads.

Used by the journal writer, the client, verification and expiry.
"""
