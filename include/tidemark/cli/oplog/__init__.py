"""``tidemark oplog``: what operators and producers do with a pipeline's operations."""
