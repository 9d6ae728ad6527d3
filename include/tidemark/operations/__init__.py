"""The operations of an oplog topic: their values, their records, and which corrections are void. Pure."""
