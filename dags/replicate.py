"""Replicate a journal: bind, capture, audit, publish, then deliver to every writer.

### What it does

Takes what is new in the pipeline's Kafka topics into the commit log and from there to every writer.
`bind` decides durably which offsets this run takes; `capture` reads exactly those into Parquet files that
nobody can see yet; `audit` lets only those pass that keep the rules; `publish` makes them part of the log;
`deliver` brings every writer to the log's end.
A run that finds nothing new starts no JVM and ends in seconds.

### Parameters

None: everything comes from the pipeline's file.

### When it fails, and repairs itself

Every task may be repeated at any time: `bind` answers with the run's own binding, `capture` keeps the
files it finds, `publish` and `deliver` skip what is done. Tasks are retried twice, and a later run first
finishes a binding that was never published.

### When a person must step in

When Kafka has lost records that were never captured or a capture fails its audit, the log's gate closes:
put the cause right and clear the failed task (for an audit: `capture` and what follows), or accept it with
`tidemark log accept`. Scheduled runs stop at a closed gate, a run that you trigger tries again. Also when a
file of the log is damaged, or when a target stays away: the failed task's log says what to do.

### What it returns

`audit`: how many expectations were not met; the link *Audit results* shows all of them.
`publish`: the binding's time, ids, records, bytes and the seconds its capture took, also as the event of the
asset `<pipeline>.log`.
`deliver`: position and counts of every writer.
"""

from airflow.sdk import DAG, TriggerRule

from tidemark.delivery.pipeline import Pipeline
from tidemark.delivery.pipeline_file import load_pipelines
from tidemark_airflow.audit import AuditOperator
from tidemark_airflow.house import START, Tag, data_intervals, task_defaults
from tidemark_airflow.replicate import BOUND_T, MESSAGES, bind, publish
from tidemark_airflow.spark_app import SparkAppOperator


def replicate(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    with DAG(
        dag_id=f"{pipeline.name}.replicate",
        dag_display_name=f"{pipeline.name}: replicate",
        description="Kafka to the commit log, and from there to every writer",
        doc_md=__doc__,
        schedule=data_intervals(pipeline.schedule),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        tags=[Tag.TIDEMARK, Tag.REPLICATION, pipeline.name],
    ) as dag:
        bound = bind(pipeline.name)
        capture = SparkAppOperator(
            task_id="capture",
            pipeline=pipeline.name,
            app="capture",
            arguments=["--t", BOUND_T],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            doc_md="Read exactly the bound offsets into files of the log, not yet visible.",
        )
        audit = AuditOperator(
            task_id="audit",
            pipeline=pipeline.name,
            t=BOUND_T,
            doc_md="Show what the audit of the capture found; stop at a bad finding.",
        )
        deliver = SparkAppOperator(
            task_id="deliver",
            pipeline=pipeline.name,
            app="deliver",
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            trigger_rule=TriggerRule.NONE_FAILED,
            doc_md="Bring every writer to the end of the log, binding by binding.",
        )
        bound >> capture >> audit >> publish(pipeline.name) >> deliver
        bound >> deliver
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_replicate"] = replicate(declared)
