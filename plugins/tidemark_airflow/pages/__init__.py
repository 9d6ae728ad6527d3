"""What Airflow's API server gets from Tidemark: result pages and two middlewares."""
