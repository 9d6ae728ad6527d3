"""Triggers: the conditions that deferred sensors wait for, checked by Airflow's triggerer."""
