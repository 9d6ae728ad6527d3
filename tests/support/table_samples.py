"""Tables that no server has."""

from tidemark.cassandra.table import Column, Role, Table

ORDERS = Table(
    "shop",
    "orders",
    (
        Column("customer", "text", Role.PARTITION_KEY),
        Column("year", "int", Role.PARTITION_KEY),
        Column("number", "bigint", Role.CLUSTERING),
        Column("Note", "text"),
        Column("placed", "timestamp"),
        Column("tags", "set<text>"),
        Column("total", "decimal"),
    ),
)
"""A key of three columns, a name that needs quotes."""
EVENTS = Table("shop", "events", (Column("id", "int", Role.PARTITION_KEY), Column("payload", "text")))
ODD = Table(
    "shop",
    "odd",
    (Column("id", "uuid", Role.PARTITION_KEY), Column("home", "'org.apache.cassandra.db.marshal.FooType'")),
)
"""With a column that has no place in a DataFrame."""
VISITS = Table("shop", "visits", (Column("page", "text", Role.PARTITION_KEY), Column("visits", "counter")))
