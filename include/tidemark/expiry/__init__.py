"""Expired entities: which days are over, who is purged and who is left alone, and what was sent to Kafka."""
