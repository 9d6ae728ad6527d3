"""Purge expired entities: find them, send purge actions to Kafka like any producer, wait, report.

### What it does

The run for a day finds the entities whose heads say that they expired on it, once the day is over in the time
zone of the pipeline's `expiry`. `plan` asks the index of the heads, day by day, and shows the entities: the
first hundred, the total, the number for every day. It also asks the days that earlier runs could not finish,
and those that no scheduled run was there for. Up to 200,000 entities are found by the task itself; beyond
that the Spark application `find_expired` asks the index in many tasks at once. `purge` looks at every planned
entity once more, right before it is sent: its head, then the commit log from the writer's position on, then
Kafka to its end. Any newer append, delete or purge, and it is left alone and reported. The others are sent
the plain purge action of the contract, to the partition of their heads, with an origin that names the run.
`wait_for_replication` waits, without holding a worker, until the journal's writer has passed the purges;
`report` says what the run came to. A run with nothing to do starts no JVM and ends in seconds. A day is asked
again by later runs until all that was bound before its end is written and nothing of it is left.

**The window that remains.** A purge is unconditional for everybody who reads it. An append that reaches
Kafka after the last look and before the purge is purged with the rest. That is about a second, as long as
the look at 500 entities and their sending take, and up to 30 s where Kafka is slow to acknowledge.
`report` searches the log for such appends. If there are any it pins them, so that compaction leaves them
in the log, and the run fails with the entities and ids. Until the search is done compaction waits too.

### Parameters

`dry_run`: only show the plan; on unless you switch it off. Runs on schedule and backfills are not dry.
`first_day`, `last_day`: the days to ask, and no others; left out, the last day that is over and whatever is
unfinished. `max_purges`: stop if more entities are to be purged; left out, what the pipeline's file says.
`approve`: wait for a person to approve the plan before anything is sent.

Days that were missed: one run with `first_day` and `last_day`, or, where `expiry` has a schedule,
`airflow backfill create --dag-id <pipeline>.purge_expired --from-date … --to-date …`, in which every run asks
the days that end in its interval. However often a day is asked, its entities are purged once.

### When it fails, and repairs itself

Every task may be repeated. What is to be sent is on record before it is, so a retry recognises what was sent
by the run that its origin names, and sends only the rest; a purge that arrives twice all the same finds no
entity. When Kafka or Cassandra do not answer, tasks are retried twice; days are written down first, so the
next run asks what this one could not finish. A run that has sent purges and failed for good is still to be
finished: clear its failed task, or `tidemark journal expired --report`. Until then compaction waits, and its
plans name the run.

### When a person must step in

When more is to be purged than `max_purges`: look at it with `tidemark journal expired`; if it is to go, run
it with a higher one. When the plan waits for approval under *Required Actions*. When a purge overtook an
append: look at the message (`tidemark log show <pipeline> --from ID --to ID --json`), append its events again
(`tidemark journal append`), release it with `tidemark log unpin <pipeline> ID`, then clear `report`. When
Kafka has lost records that were never bound: nothing more is purged before `<pipeline>.replicate` has dealt
with it.

### What it returns

`plan`: the total, the number for every day, the first entities. `purge`: how many were purged and left alone.
`report`: entities found, purged and left alone, with reasons; events that went with them; days covered, with
why one is asked again. `tidemark journal expired --history` shows the reports of all runs.
"""

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TaskGroup

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Expiry, Pipeline
from tidemark_airflow.asking import Approval
from tidemark_airflow.expiry import RUN, PlanOperator, decide, follow_approval, purge, report
from tidemark_airflow.house import START, Tag, data_intervals, plan_params, task_defaults
from tidemark_airflow.replicated import ReplicatedSensor


def purge_expired(pipeline: Pipeline, expiry: Expiry) -> DAG:
    """The DAG of one pipeline."""
    with DAG(
        dag_id=f"{pipeline.name}.purge_expired",
        dag_display_name=f"{pipeline.name}: purge expired",
        description="Expired entities leave through the front door: purge actions in Kafka",
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
                description="The first day to ask; left out, the last one that is over.",
            ),
            "last_day": Param(
                None,
                type=["null", "string"],
                format="date",
                description="The last day to ask; left out, the last one that is over.",
            ),
            "max_purges": Param(
                None,
                type=["null", "integer"],
                minimum=1,
                description="Stop if more entities are to be purged; left out, as the pipeline's file says.",
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
    plan = PlanOperator(
        task_id="plan",
        pipeline=pipeline.name,
        writer=writer,
        ceiling=expiry.max_purges,
        conn_id=pipeline.spark.connection,
        doc_md="Find whom the run is to purge, through the index of the heads, and show it.",
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
