# One image for every role of Tidemark: Airflow's four processes, Spark's master, workers and Connect server, the one-shot set-up.
# Which role a container plays is the command that docker-compose.yaml gives it.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*

# Folders that volumes are mounted on must belong to the user: a new volume takes over owner and mode.
RUN useradd --create-home --uid 10001 tidemark \
    && install --directory --owner=tidemark --group=tidemark \
        /opt/tidemark/cache /var/lib/tidemark /var/lib/spark \
        /var/lib/airflow /var/lib/airflow/logs \
    && install --directory --owner=tidemark --group=tidemark --mode=0700 /var/lib/airflow/auth

WORKDIR /opt/tidemark
ENV VIRTUAL_ENV=/opt/tidemark/.venv \
    PATH=/opt/tidemark/.venv/bin:$PATH \
    PYTHONPATH=/opt/tidemark \
    SPARK_HOME=/opt/tidemark/.venv/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/tidemark/.venv/bin/python \
    AIRFLOW_HOME=/var/lib/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tidemark/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tidemark/plugins \
    GX_ANALYTICS_ENABLED=False \
    TIDEMARK_CACHE=/opt/tidemark/cache

COPY requirements.txt ./
COPY deploy/requirements.txt deploy/
RUN python -m venv .venv \
    && pip install --no-cache-dir -r requirements.txt -r deploy/requirements.txt

# Compiled here, because the user who runs it cannot write next to the sources.
COPY . .
RUN pip install --no-cache-dir --no-deps -e . \
    && python -m compileall -q include dags plugins spark_apps

# Spark's Kafka connector, so that no container has to download anything when it starts.
USER tidemark
RUN tidemark services fetch --only spark
