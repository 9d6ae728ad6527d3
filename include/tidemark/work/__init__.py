"""The work journal: a durable queue, one entry a key, ordered by priority and time, deleted in buckets."""
