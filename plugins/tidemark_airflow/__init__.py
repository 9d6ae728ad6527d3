"""The Airflow side of Tidemark: operators, sensors, triggers, tasks and web pages, and what its DAGs share.

Holds no rule about data: those are in ``include/tidemark``. Modules import heavy libraries inside functions
only, because Airflow imports every file of this folder when it parses DAGs.
"""

from tidemark_airflow.earlier_paths import install

install()
