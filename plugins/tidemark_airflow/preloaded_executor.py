"""Airflow's local executor, with what Tidemark's tasks import loaded before workers are forked.

A task of the local executor is a fork of a worker, which is a fork of the scheduler: what the scheduler has
loaded, no task loads again. Great Expectations alone takes two seconds. What is loaded: ``preload``.
"""

import os

from airflow.executors.local_executor import LocalExecutor

from tidemark_airflow.preload import OTHERS, OwnModules, load


class PreloadedExecutor(LocalExecutor):
    """``[core] executor = tidemark_airflow.preloaded_executor.PreloadedExecutor``."""

    def start(self) -> None:
        """Load modules, then fork the workers."""
        load(OTHERS)
        os.register_at_fork(after_in_child=OwnModules.load().forget_changed)
        super().start()
