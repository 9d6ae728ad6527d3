"""Take-over of a journal's tables from kafka-journal's replicator, and hand-back to it."""
