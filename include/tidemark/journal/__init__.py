"""The actions of a kafka-journal topic and their effect on an entity.

Pure: no I/O, no Spark, no Airflow, no clock.

``codec.record.read_action`` decodes a Kafka record into an action. ``fold.fold`` applies the actions of one
entity to its head and returns the writes to make (``effect.Effect``). In the other direction,
``action.append`` and ``codec.record.write_action`` encode an action as a Kafka record.
"""
