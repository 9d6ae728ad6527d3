"""Jobs about the operations of an oplog topic."""
