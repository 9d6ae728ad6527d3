"""Sensors: tasks that wait for a condition without holding a worker.

The name of a sensor's method ``go_on`` is stored in Airflow's database while the task is deferred: it stays.
"""

from datetime import timedelta

NO_TIMEOUT = timedelta(days=3650)
"""A wait for an operator or for a target has no limit."""
