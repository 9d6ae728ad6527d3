"""Spark sessions and schemas for the applications in ``spark_apps/``."""
