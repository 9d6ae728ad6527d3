"""Replicate a journal: bind, capture, audit, publish, then deliver to every writer.

### What it does

Copies new messages from the pipeline's Kafka topics to the commit log, and from there to every writer.

1. `bind` records durably which offsets this run takes.
2. `capture` reads exactly those offsets into Parquet files that are not yet visible to readers.
3. `audit` checks the files against the pipeline's expectations.
4. `publish` makes them part of the log.
5. `deliver` brings every writer whose gate is open to the end of the log.
6. `reconcile` compares the writers' output with the log: a sample of a journal's entities; all files by name
   and size and a few by their bytes; the last ids of every partition of a topic.
7. `start_resume` starts `<pipeline>.resume` for writers that stopped. In a pipeline that has writers with
   `on_change: rebuild`, `start_rebuild` starts `<pipeline>.rebuild` for those whose settings in the file have
   changed.

With a Spark Connect server as engine, up to 5,000 messages are captured and delivered in the tasks' own
processes, without Spark. A run without new messages starts no JVM and ends in seconds. `bind` then compares
files, topics and the pointers of journals with the log.

### Parameters

* `from_t`, `to_t`: deliver the bindings of this interval again and verify every entity that they touch. The
  run makes no binding and moves no position. Each is a date or time (`2026-11-01`, `2026-11-01T12:00:00Z`;
  UTC unless it names a zone) or a number of µs since 1970. A date means its midnight. A backfill does the
  same for each of its intervals. It needs a pipeline with a schedule: Airflow refuses a backfill with
  `schedule: null`, because there are no intervals. Use `from_t` there.
* `verify`: compare all entities, files and messages with the log after the delivery, instead of a sample.

### When it fails, and repairs itself

Every task is idempotent: `bind` returns the run's existing binding, `capture` keeps files that exist,
`publish` and `deliver` skip what is done. Tasks are retried twice. A later run first finishes a binding that
was never published.

### When a person must step in

* Kafka has lost records that were never captured, or a capture fails its audit: the log's gate closes. Repair
  the cause and clear the failed task (for an audit: `capture` and the tasks after it), or accept the loss or
  finding with `tidemark log accept`. Scheduled runs stop at a closed gate; a run that you trigger tries
  again.
* A file of the log is damaged: see `tidemark log verify`.
* A writer stopped: the run in which it stops fails. Later runs skip its `gate_…` task, which logs what to do;
  with `on_failure: stop_pipeline` they wait there. While a failure keeps a writer stopped, `check_gates`
  fails every run after all other writers were delivered to; with `stopped_writers: skip` in the pipeline's
  file it only logs. A writer that an operator stopped fails no run.
* A writer's output differs from the log: the writer is stopped, and `reconcile` names the differences. A
  journal needs a rebuild, or, if the log is incomplete, the step that the message names. Missing files or
  messages need a resume. A topic that was recreated needs a rewind.

### What it returns

* `audit`: the number of expectations that were not met; the link *Audit results* shows all of them.
* `publish`: the binding's time, ids, records, bytes and the seconds of its capture; the event of the asset
  `<pipeline>.log` carries the same.
* `reconcile`: per writer, how much was compared, how much differs, how much cannot be proved; the link
  *Reconciliation* shows every finding.
* `check_gates`: the state of every writer's gate; skipped, like `find_stopped`, where `deliver` found all
  open.
* `check_writers`: records, events, entities, duplicate sequence numbers, messages left out because their
  topic was recreated, position and lag of every writer, the Spark engine that delivered and the seconds it
  was waited for, seconds in all; the event of the asset `<pipeline>.delivered` carries the same.
"""

from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import OnFailure, Pipeline
from tidemark.pipeline.writers import OnChange
from tidemark_airflow.dag_defaults import START, Tag, data_intervals, task_defaults
from tidemark_airflow.operators.audit import AuditOperator
from tidemark_airflow.operators.deliver import DeliverOperator
from tidemark_airflow.operators.reconcile import ReconcileOperator
from tidemark_airflow.operators.spark_app import SparkAppOperator
from tidemark_airflow.sensors.gate import GateSensor
from tidemark_airflow.tasks.gates import check_gates, check_writers, gate_task, resume_stopped
from tidemark_airflow.tasks.rebuild import rebuild_changed
from tidemark_airflow.tasks.replicate import (
    BOUND_T,
    FROM_T,
    HOLDER,
    MESSAGES,
    TIME,
    TO_T,
    VERIFY,
    bind,
    publish,
)


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
        params={
            "from_t": Param(
                None,
                type=["null", "string", "integer"],
                minimum=0,
                pattern=TIME,
                description="Deliver the bindings from this time on again: a date, a time or µs.",
            ),
            "to_t": Param(
                None,
                type=["null", "string", "integer"],
                minimum=0,
                pattern=TIME,
                description="Up to this time (a date, a time or µs), included; left out, the newest.",
            ),
            "verify": Param(
                False, type="boolean", description="Compare everything with the log, not only a sample."
            ),
        },
        tags=[Tag.TIDEMARK, Tag.REPLICATION, pipeline.name],
    ) as dag:
        gates = [
            GateSensor(
                task_id=gate_task(writer.name),
                pipeline=pipeline.name,
                writer=writer.name,
                waits=pipeline.on_failure is OnFailure.STOP_PIPELINE,
                doc_md="Succeed where the writer's gate is open; else skip or wait, and log what to do.",
            )
            for writer in pipeline.writers
        ]
        bound = bind(pipeline.name)
        capture = SparkAppOperator(
            task_id="capture",
            pipeline=pipeline.name,
            app="capture",
            arguments=["--t", BOUND_T],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            doc_md="Read exactly the bound offsets into files of the log that are not yet visible.",
        )
        audit = AuditOperator(
            task_id="audit",
            pipeline=pipeline.name,
            t=BOUND_T,
            doc_md="Log what the audit of the capture found; fail at a critical finding.",
        )
        deliver = DeliverOperator(
            task_id="deliver",
            pipeline=pipeline.name,
            about_gates=["find_stopped", "check_gates"],
            arguments=["--holder", HOLDER, "--from-t", FROM_T, "--to-t", TO_T, "--verify", VERIFY],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            trigger_rule=TriggerRule.NONE_FAILED,
            doc_md="Bring every open writer to the end of the log, binding by binding.",
        )
        stopped, start_resume = resume_stopped(pipeline.name)
        reconciled = ReconcileOperator(
            task_id="reconcile",
            pipeline=pipeline.name,
            doc_md="Log how the delivered output compares with the log; fail at a difference.",
        )
        checked = check_writers(pipeline.name)
        if pipeline.on_failure is OnFailure.STOP_PIPELINE:
            gates >> bound
        else:
            bound >> gates >> deliver
        bound >> capture >> audit >> publish(pipeline.name) >> deliver
        # A closed gate stays visible however the other tasks ended.
        still_closed = check_gates.override(trigger_rule=TriggerRule.ALL_DONE)(pipeline.name)
        bound >> deliver
        bound >> stopped >> start_resume
        bound >> still_closed
        if any(writer.on_change is OnChange.REBUILD for writer in pipeline.writers):
            changed, start_rebuild = rebuild_changed(pipeline.name)
            deliver >> changed >> start_rebuild
        # Side by side: whether the output is as it should be, `deliver` has found out and recorded.
        deliver >> [reconciled, checked, stopped, still_closed]
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_replicate"] = replicate(declared)
