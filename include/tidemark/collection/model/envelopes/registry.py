"""All envelopes by their names. A further one is a module, a name and a line here."""

from collections.abc import Mapping

from tidemark.collection.model.envelopes.append import APPEND
from tidemark.collection.model.envelopes.debezium import DEBEZIUM
from tidemark.collection.model.envelopes.envelope import Envelope, EnvelopeName
from tidemark.collection.model.envelopes.oplog import OPLOG
from tidemark.collection.model.envelopes.upsert import UPSERT

ENVELOPES: Mapping[EnvelopeName, Envelope] = {one.name: one for one in (UPSERT, APPEND, DEBEZIUM, OPLOG)}
