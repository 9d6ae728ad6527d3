"""Kafka: the only package that imports a Kafka client. Its values, classes and errors are our own.

Two client libraries are behind it, because neither does all of it well:

``confluent_kafka`` (librdkafka, in C) carries the records: transactional and idempotent producers, readers by
offset, hints. It is imported in 25 ms, keeps connections and threads for processes that go on, and reports
rights and ids of topics. Used by ``consumer``, ``producer``, ``tail``, ``hints``, ``topics``.

``kafka`` (kafka-python) asks short administrative questions: the offsets of all partitions of a pipeline in
one request a broker, where librdkafka's consumer asks for one partition at a time; topics to create; members
and offsets of consumer groups. It has no threads that outlive a question, and names the reason when no broker
answers. It is imported in 270 ms, so long-lived clients do without it. Its hash of keys is that of Java's
clients. Used by ``admin``, ``offsets``, ``consumer_groups``, ``topic_creation``, ``partitioning``.

``errors`` holds what both raise. ``topic_shape``, ``topic_ids`` and ``source_topics`` need no client.
"""
