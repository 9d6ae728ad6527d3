"""What commands and Airflow tasks call: an opened pipeline, and the steps of each DAG."""
