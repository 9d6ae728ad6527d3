"""Replicate a journal: bind, capture, audit, publish, then deliver to every writer.

### What it does

Takes what is new in the pipeline's Kafka topics into the commit log and from there to every writer.
`bind` decides durably which offsets this run takes; `capture` reads exactly those into Parquet files that
nobody can see yet; `audit` lets only those pass that keep the rules; `publish` makes them part of the log;
`deliver` brings every writer whose gate is open to the log's end; `reconcile` shows how what they hold
compares with the log: a sample of a journal's entities, all files by name and size and a few by their bytes,
the last ids of every partition of a topic; `start_resume` starts `<pipeline>.resume` for those that stopped.
A run that finds nothing new starts no JVM and ends in seconds; `bind` then looks at files, topics and the
pointers of journals.

### Parameters

`from_t`, `to_t`: deliver the bindings of this interval again and verify every entity they touch; none is made
and no position moves. A date or time (`2026-11-01`, `2026-11-01T12:00:00Z`; UTC where it says nothing else)
or µs since 1970; a date is its midnight. A backfill does the same for each of its intervals, and needs a
pipeline with a schedule: Airflow refuses one with `schedule: null`, because it has no intervals. A run with
`from_t` does for all.
`verify`: compare all entities, files and messages with the log after the delivery, not only a sample.

### When it fails, and repairs itself

Every task may be repeated at any time: `bind` answers with the run's own binding, `capture` keeps the
files it finds, `publish` and `deliver` skip what is done. Tasks are retried twice, and a later run first
finishes a binding that was never published.

### When a person must step in

When Kafka has lost records that were never captured or a capture fails its audit, the log's gate closes:
put the cause right and clear the failed task (for an audit: `capture` and what follows), or accept it with
`tidemark log accept`. Scheduled runs stop at a closed gate, a run that you trigger tries again. Also when a
file of the log is damaged. A writer that stops fails the run in which it does; later runs skip its
`gate_…` task, with what to do in the log, or wait there with `on_failure: stop_pipeline`. While a failure
keeps a writer stopped, `check_gates` fails every run, after all the others were delivered to; with
`stopped_writers: skip` in the pipeline's file it only says so. A writer that an operator stopped fails no
run. A writer whose output is not what the log says is stopped too: `reconcile` names what is different. The
way out for a journal is a rebuild, or, where the log is not whole, what its message names; for missing files
or messages a resume, for a topic that was made again a rewind.

### What it returns

`audit`: how many expectations were not met; the link *Audit results* shows all of them.
`publish`: the binding's time, ids, records, bytes and the seconds its capture took, also as the event of the
asset `<pipeline>.log`.
`reconcile`: per writer, how much was looked at, is different, is not provable; the link *Reconciliation*
shows every finding.
`check_gates`: how every writer's gate stands.
`check_writers`: records, events, entities, duplicate sequence numbers and messages left out because their
topic was made again, position and lag of every writer, seconds; the event of the asset
`<pipeline>.delivered` carries the same.
"""

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import OnFailure, Pipeline
from tidemark_airflow.audit import AuditOperator
from tidemark_airflow.gates import GateSensor, check_gates, check_writers, find_stopped, gate_task
from tidemark_airflow.house import START, Tag, data_intervals, task_defaults
from tidemark_airflow.reconcile import ReconcileOperator
from tidemark_airflow.replicate import BOUND_T, FROM_T, HOLDER, MESSAGES, TIME, TO_T, VERIFY, bind, publish
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
                doc_md="Pass where the writer's gate is open; else skip, or wait, and say what to do.",
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
            arguments=["--holder", HOLDER, "--from-t", FROM_T, "--to-t", TO_T, "--verify", VERIFY],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            trigger_rule=TriggerRule.NONE_FAILED,
            doc_md="Bring every open writer to the end of the log, binding by binding.",
        )
        stopped = find_stopped.override(trigger_rule=TriggerRule.ALL_DONE)(pipeline.name)
        start_resume = TriggerDagRunOperator.partial(
            task_id="start_resume",
            trigger_dag_id=f"{pipeline.name}.resume",
            skip_when_already_exists=True,
            doc_md="Start a resume for every writer that stopped; once per closing of its gate.",
        ).expand_kwargs(stopped)
        reconciled = ReconcileOperator(
            task_id="reconcile",
            pipeline=pipeline.name,
            doc_md="Show how what was delivered compares with the log; stop at a difference.",
        )
        checked = check_writers(pipeline.name)
        if pipeline.on_failure is OnFailure.STOP_PIPELINE:
            gates >> bound
        else:
            bound >> gates >> deliver
        bound >> capture >> audit >> publish(pipeline.name) >> deliver
        bound >> deliver >> reconciled >> checked
        deliver >> stopped
        bound >> stopped >> start_resume
        # Whatever became of the rest: a gate that is closed stays visible.
        still_closed = check_gates.override(trigger_rule=TriggerRule.ALL_DONE)(pipeline.name)
        bound >> still_closed
        [reconciled, start_resume] >> still_closed
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_replicate"] = replicate(declared)
