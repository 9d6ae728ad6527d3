#!/usr/bin/env bash
# Runs before Airflow starts: migrates its database, sets the pool for Spark applications and the admin password.
# Idempotent; runs at every `docker compose up`.
set -euo pipefail

airflow db migrate
airflow pools set spark "$TIDEMARK_SPARK_SLOTS" "Spark applications that may run at once"
python "$(dirname "$0")/admin_password.py"
