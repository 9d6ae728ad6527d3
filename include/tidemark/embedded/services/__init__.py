"""The embedded services: Kafka, Cassandra, Spark and Airflow."""
