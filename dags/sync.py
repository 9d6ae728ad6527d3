"""Synchronise the operations with a dump of their source: what differs is sent as corrections.

### What it does

1. `validate` reads the dump: JSON lines, plain or gzip, each with `type`, `id`, `timestamp` and `parents`. It
   names every bad line and tolerates none, because an object whose line is bad would be deleted.
2. `replicate` starts a run of `<pipeline>.replicate` where the collection does not have everything that the
   topic has; `barrier` waits for it without holding a worker.
3. `diff` compares the dump with the objects. An object of the dump that is missing, or was deleted before the
   dump began, is inserted; one that the dump has newer, or with other parents, is updated; one that the dump
   lacks is deleted. What changed at the start of the dump or later is left alone.
4. `guard` refuses more deletes than `max_deletes`.
5. `approve` asks a person, where the run wants that.
6. `send` sends the corrections. It reads the topic meanwhile and leaves objects alone that have changed since
   the comparison. A correction that a change has overtaken all the same is void for every reader.
7. `replicate_corrections` and `wait_for_replication` do what `replicate` and `barrier` did.
8. `verify` looks at the corrected objects once more: each is as it was corrected, or a later operation
   explains what it is.
9. `report` keeps what the run did.

The same dump with the same start, once more, sends nothing.

### Parameters

* `dump`: the path or the URI of the dump, as workers see it.
* `start`: when the dump began, such as `2026-11-17T10:00:00Z`. Earlier is safer: what changed since is left
  alone. `newest` takes the greatest timestamp in the dump: an object that was created while the dump was made
  may then be deleted.
* `dry_run`: only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule
  are never dry. There is no schedule.
* `approve`: wait for a person to approve the plan before anything is sent.
* `max_deletes`: the most deletes: a number, or a share of the objects (at least ten).
* `force`: send however many deletes there are, and take an empty dump.
* `reason`: why; kept for ever.

### When it fails, and repairs itself

Every task is idempotent. The comparison is kept as files before anything is sent, and a retry recognizes in
the topic what was sent before: no correction counts twice, whenever a task was killed.

### When a person must step in

* The dump is refused: correct the lines that `validate` names, and start again.
* Too many objects would be deleted: see that the dump is complete. If they are to go, raise `max_deletes`.
* The plan waits for approval under *Required Actions*.
* `barrier` waits for a writer whose gate is closed: see `<pipeline>.resume`.
* The topic was made again, has other partitions, or has lost operations since the comparison: nothing more is
  sent. Run `<pipeline>.replicate`, then start again.
* `verify` finds objects that nothing explains: compare the collection with its log (`tidemark verify`).

### What it returns

* `diff`: the plan: objects by outcome, the first corrections. `send`: corrections sent, and objects that had
  changed. `report`: all of it; `tidemark oplog syncs` shows the reports of all runs.
"""

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.dag_defaults import START, Tag, plan_params, task_defaults
from tidemark_airflow.operators.compare_dump import CompareDumpOperator
from tidemark_airflow.operators.start_replication import StartReplicationOperator
from tidemark_airflow.sensors.collected import CollectedSensor
from tidemark_airflow.tasks.approval import Approval
from tidemark_airflow.tasks.sync import LINES, RUN, T, follow_approval, guard, report, send, validate, verify

FORMAT = "oplog"
SHOWN = "{{ ti.xcom_pull(task_ids='diff')['%s'] }}"


def sync(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    with DAG(
        dag_id=f"{pipeline.name}.sync",
        dag_display_name=f"{pipeline.name}: synchronise with a dump",
        description="Compare the objects with a dump of their source, and send what differs",
        doc_md=__doc__,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        params={
            "dump": Param(
                type="string", minLength=1, maxLength=2000, description="The path or the URI of the dump."
            ),
            "start": Param(
                type="string",
                minLength=1,
                maxLength=40,
                description="When the dump began, such as 2026-11-17T10:00:00Z; or newest.",
            ),
            **plan_params(),
            "max_deletes": Param(
                "10%",
                type="string",
                pattern=r"^[0-9]+(\.[0-9]+)? ?%?$",
                description="The most deletes: a number, or a share of the objects.",
            ),
            "force": Param(
                False, type="boolean", description="Send any number of deletes; take an empty dump too."
            ),
            "reason": Param(None, type=["null", "string"], maxLength=500, description="Why; kept for ever."),
        },
        tags=[Tag.TIDEMARK, Tag.OPLOG, pipeline.name],
    ) as dag:
        validated = validate(pipeline.name)
        replicate = StartReplicationOperator(
            task_id="replicate",
            pipeline=pipeline.name,
            doc_md="Start a replication, where the collection does not have everything yet.",
        )
        barrier = CollectedSensor(
            task_id="barrier",
            pipeline=pipeline.name,
            execution_timeout=None,
            trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
            doc_md="Wait until the collection has everything that the topic has.",
        )
        diff = CompareDumpOperator(
            task_id="diff",
            pipeline=pipeline.name,
            run=RUN,
            t=T,
            messages=LINES,
            conn_id=pipeline.spark.connection,
            doc_md="Compare the dump with the objects, and show what would be sent.",
        )
        guarded = guard(pipeline.name, diff.output)
        approve = HITLOperator(
            task_id="approve",
            subject=f"{pipeline.name}: {SHOWN % 'corrections'} corrections are to be sent",
            body=f"{SHOWN % 'deletes'} of them are deletes, of {SHOWN % 'objects'} objects. Outcomes: "
            f"{SHOWN % 'outcomes'}. The first of them are in the log of the task `diff`.",
            options=[answer.value for answer in Approval],
            execution_timeout=None,
            doc_md="Ask a person to approve the plan.",
        )
        approved = follow_approval(pipeline.name, approve.output)
        sent = send(pipeline.name, diff.output)
        again = StartReplicationOperator(
            task_id="replicate_corrections",
            pipeline=pipeline.name,
            doc_md="Start a replication, where the corrections are not delivered yet.",
        )
        waited = CollectedSensor(
            task_id="wait_for_replication",
            pipeline=pipeline.name,
            run=RUN,
            t=T,
            execution_timeout=None,
            trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
            doc_md="Wait until the collection has the corrections.",
        )
        verified = verify(pipeline.name, diff.output)
        reported = report(pipeline.name, diff.output)
        validated >> [replicate, barrier]
        replicate >> barrier >> diff
        guarded >> [approve, sent, reported]
        approved >> sent >> [again, waited]
        again >> waited >> verified >> reported
    return dag


for declared in load_pipelines().pipelines:
    if declared.source.kafka.format == FORMAT and any(one.kind == "collection" for one in declared.writers):
        globals()[f"{declared.name}_sync"] = sync(declared)
