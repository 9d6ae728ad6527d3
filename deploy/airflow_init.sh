#!/usr/bin/env bash
# Before Airflow starts: its database, the pool for Spark applications, the administrator's password.
# Safe to run again, and run at every `docker compose up`.
set -euo pipefail

airflow db migrate
airflow pools set spark "$TIDEMARK_SPARK_SLOTS" "Spark applications that may run at once"
python "$(dirname "$0")/admin_password.py"
