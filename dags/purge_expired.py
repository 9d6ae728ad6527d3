"""Purge expired entities: find them, send purge actions to Kafka like any producer, wait, report.

### What it does

A run for a day finds the entities whose heads say that they expired on that day, once the day is over in the
time zone of the pipeline's `expiry`.

1. `plan` queries the index of the heads, day by day. It logs the first hundred entities, the total and the
   number for every day. It includes days that earlier runs could not finish and days without a scheduled run.
   The task itself finds up to 200,000 entities; beyond that the Spark application `find_expired` queries the
   index in parallel.
2. `purge` checks every planned entity once more, right before sending: its head, then the commit log from the
   writer's position on, then Kafka to its end. An entity with a newer append, delete or purge is left alone
   and reported. For the others it sends the plain purge action of the contract, to the partition of their
   heads, with an origin that names the run.
3. `wait_for_replication` waits, without holding a worker, until the journal's writer has passed the purges.
4. `report` summarizes the run.

A run with nothing to do starts no JVM and ends in seconds. Later runs repeat a day until everything that was
bound before its end is written and no entity of it is left.

**The remaining window.** A purge is unconditional for every reader. An append that reaches Kafka after the
last check and before the purge is purged with the rest. The window is about a second, which is the time for
checking and sending 500 entities, and up to 30 s where Kafka is slow to confirm. `report` searches the log
for such appends. If there are any, it pins them, so that compaction leaves them in the log, and the run fails
with the entities and ids. Compaction waits until the search is done.

### Parameters

* `dry_run`: only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule
  are never dry.
* `first_day`, `last_day`: take these days and no others; left out, the last day that is over and every
  unfinished day.
* `max_purges`: fail if more entities are to be purged; left out, the limit in the pipeline's file.
* `approve`: wait for a person to approve the plan before anything is sent.

For days that were missed, start one run with `first_day` and `last_day`. Where `expiry` has a schedule, a
backfill does the same, one run per interval:
`airflow backfill create --dag-id <pipeline>.purge_expired --from-date … --to-date …`, with `--dag-run-conf
'{"dry_run": false}'`. However often a day is repeated, its entities are purged once.

### When it fails, and repairs itself

Every task is idempotent. The purges to send are recorded before the first is sent, so a retry recognizes by
their origin those that were sent, and sends only the rest. A purge that arrives twice all the same finds no
entity. When Kafka or Cassandra do not answer, tasks are retried twice; days are recorded first, so the next
run repeats those that this one could not finish. A run that has sent purges and failed for good still has to
be finished: clear its failed task, or use `tidemark journal expired --report`. Compaction waits until then,
and its plans name the run.

### When a person must step in

* More entities are to be purged than `max_purges`: inspect them with `tidemark journal expired`; run it again
  with a higher limit if they are to be purged.
* The plan waits for approval under *Required Actions*.
* A purge overtook an append: inspect the message (`tidemark log show <pipeline> --from ID --to ID --json`),
  append its events again (`tidemark journal append`), release it with `tidemark log unpin <pipeline> ID`,
  then clear `report`.
* Kafka has lost records that were never bound: nothing more is purged until `<pipeline>.replicate` has
  handled it.

### What it returns

* `plan`: the total, the number for every day, the first entities. `purge`: how many were purged and left
  alone.
* `report`: entities found, purged and left alone, with reasons; events that were purged with them; days
  covered, with the reason why one is repeated. `tidemark journal expired --history` shows the reports of all
  runs.
"""

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TaskGroup

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Expiry, Pipeline
from tidemark_airflow.dag_defaults import START, Tag, data_intervals, plan_params, task_defaults
from tidemark_airflow.operators.plan_purge import PlanPurgeOperator
from tidemark_airflow.sensors.replicated import ReplicatedSensor
from tidemark_airflow.tasks.approval import Approval
from tidemark_airflow.tasks.purge_expired import RUN, decide, follow_approval, purge, report


def purge_expired(pipeline: Pipeline, expiry: Expiry) -> DAG:
    """The DAG of one pipeline."""
    with DAG(
        dag_id=f"{pipeline.name}.purge_expired",
        dag_display_name=f"{pipeline.name}: purge expired",
        description="Purge expired entities by sending purge actions to Kafka",
        doc_md=__doc__,
        schedule=data_intervals(expiry.schedule, expiry.timezone),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        params={
            **plan_params(),
            "first_day": Param(
                None,
                type=["null", "string"],
                format="date",
                description="The first day to take; left out, the last one that is over.",
            ),
            "last_day": Param(
                None,
                type=["null", "string"],
                format="date",
                description="The last day to take; left out, the last one that is over.",
            ),
            "max_purges": Param(
                None,
                type=["null", "integer"],
                minimum=1,
                description="Fail if more entities are to be purged; left out, the pipeline's own limit.",
            ),
        },
        tags=[Tag.TIDEMARK, Tag.EXPIRY, pipeline.name],
    ) as dag:
        journals = [journal.name for _, journal in pipeline.journals]
        for writer in journals:
            with TaskGroup(writer, prefix_group_id=len(journals) > 1):
                purge_journal(pipeline, expiry, writer, f"{writer}." if len(journals) > 1 else "")
    return dag


def purge_journal(pipeline: Pipeline, expiry: Expiry, writer: str, group: str) -> None:
    """The tasks for the entities of one journal."""
    shown = f"{{{{ ti.xcom_pull(task_ids='{group}plan')['%s'] }}}}"
    plan = PlanPurgeOperator(
        task_id="plan",
        pipeline=pipeline.name,
        writer=writer,
        ceiling=expiry.max_purges,
        conn_id=pipeline.spark.connection,
        doc_md="Find the entities to purge through the index of the heads, and show them.",
    )
    decided = decide(pipeline.name, group, plan.output)
    approve = HITLOperator(
        task_id="approve",
        subject=f"{pipeline.name}/{writer}: {shown % 'total'} expired entities are to be purged",
        body=f"By day: {shown % 'days'}. The first of them are in the log of the task `{group}plan`.",
        options=[answer.value for answer in Approval],
        execution_timeout=None,
        doc_md="Ask a person to approve the plan.",
    )
    approved = follow_approval(pipeline.name, writer, approve.output)
    purged = purge(pipeline.name, writer, plan.output)
    waited = ReplicatedSensor(
        task_id="wait_for_replication",
        pipeline=pipeline.name,
        writer=writer,
        run_name=RUN % writer,
        execution_timeout=None,
        doc_md="Wait until the journal's writer has passed the purges.",
    )
    reported = report(pipeline.name, writer, plan.output)
    decided >> [approve, purged, reported]
    approved >> purged >> waited >> reported


for declared in load_pipelines().pipelines:
    if declared.expiry and any(declared.journals):
        globals()[f"{declared.name}_purge_expired"] = purge_expired(declared, declared.expiry)
