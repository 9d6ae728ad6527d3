"""Actions of a kafka-journal topic and what they do to one entity. Pure: no I/O, no Spark, no Airflow.

A Kafka record becomes an action (``record.read_action``), the actions of an entity fold onto its head
(``fold.fold``), and what comes out is what to write (``effect.Effect``). The other way round,
``action.append`` and ``record.write_action`` make the Kafka record of an action.
"""
