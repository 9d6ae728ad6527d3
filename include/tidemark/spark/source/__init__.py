"""The Spark data source ``cassandra``."""
