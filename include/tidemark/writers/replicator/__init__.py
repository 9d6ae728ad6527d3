"""Taking over from kafka-journal's replicator, and handing back to it."""
