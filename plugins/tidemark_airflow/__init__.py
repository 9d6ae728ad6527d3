"""The Airflow side of Tidemark: operators, tasks and what all its DAGs share."""
