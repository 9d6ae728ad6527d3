"""Actions of a kafka-journal topic and what they do to one entity. Pure: no I/O, no Spark, no Airflow."""
