"""The five tables of a kafka-journal keyspace, made where they are missing.

The version row says which migrations a keyspace has seen. One that is older or newer than the version we
know is refused: writing into it could break its other users.
"""

from cassandra.cluster import Session

from tidemark.delivery.pipeline import JournalDeclaration
from tidemark.errors import TidemarkError

SCHEMA_VERSION = 8
_VERSION_KEY = "schema-version"


class SchemaVersionUnknown(TidemarkError):
    """The keyspace was made by a version of kafka-journal that we do not write for."""

    def __init__(self, pipeline: str, keyspace: str, found: str) -> None:
        super().__init__(
            f"{pipeline}: keyspace {keyspace} has schema version {found}, but only {SCHEMA_VERSION} can be "
            "written. Nothing was delivered. Bring it there with kafka-journal, or name another keyspace."
        )
        self.pipeline, self.keyspace, self.found = pipeline, keyspace, found


def create_journal(session: Session, pipeline: str, journal: JournalDeclaration) -> None:
    """Make keyspace and tables where they are missing, and check the version of those that are there."""
    for statement in _statements(journal):
        session.execute(statement)
    setting = f"{journal.keyspace}.{journal.tables.setting}"
    found = session.execute(f"SELECT value FROM {setting} WHERE key = %s", (_VERSION_KEY,)).one()
    if found is None:
        session.execute(
            f"INSERT INTO {setting} (key, value, timestamp, origin) VALUES (%s, %s, toTimestamp(now()), %s) "
            "IF NOT EXISTS",
            (_VERSION_KEY, str(SCHEMA_VERSION), "tidemark"),
        )
    elif found.value != str(SCHEMA_VERSION):
        raise SchemaVersionUnknown(pipeline, journal.keyspace, found.value)


def _statements(journal: JournalDeclaration) -> list[str]:
    keyspace, tables = journal.keyspace, journal.tables
    factors = "".join(f", '{place}': {count}" for place, count in journal.replication.factors.items())
    replication = f"{{'class': '{journal.replication.strategy.value}'{factors}}}"
    index = f"CREATE INDEX IF NOT EXISTS {tables.metajournal}_%s_idx ON {keyspace}.{tables.metajournal} (%s)"
    return [
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}",
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{tables.journal} ("
        "id text, topic text, segment bigint, seq_nr bigint, partition int, offset bigint, "
        "timestamp timestamp, origin text, version text, meta_record_id uuid, tags set<text>, "
        "metadata text, payload_type text, payload_txt text, payload_bin blob, headers map<text, text>, "
        "PRIMARY KEY ((id, topic, segment), seq_nr, timestamp))",
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{tables.pointer2} ("
        "topic text, partition int, offset bigint, created timestamp, updated timestamp, "
        "PRIMARY KEY ((topic, partition)))",
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{tables.setting} ("
        "key text PRIMARY KEY, value text, timestamp timestamp, origin text, metadata text)",
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{tables.locks} ("
        "id text PRIMARY KEY, expiry_ms bigint, timestamp timestamp, metadata text)",
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{tables.metajournal} ("
        "id text, topic text, segment bigint, partition int, offset bigint, segment_size int, seq_nr bigint, "
        "delete_to bigint, created timestamp, created_date date, updated timestamp, expire_after duration, "
        "expire_on date, record_id uuid, origin text, properties map<text, text>, metadata text, "
        "PRIMARY KEY ((topic, segment), id))",
        index % ("created_date", "created_date"),
        index % ("expire_on", "expire_on"),
    ]
