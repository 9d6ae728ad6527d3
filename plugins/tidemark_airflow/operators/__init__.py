"""Operators: tasks that run one class with parameters."""
