"""Follow a journal: rounds of bind, capture, audit, publish and deliver, a second apart.

### What it does

Brings new messages to every writer within a second or two, instead of at the end of an interval. Only
pipelines whose file has the key `follow` have this DAG. One run follows another.

1. `wait_until_ready` waits, without holding a worker, for the Spark engine, an open gate of the log, and
   writers that no other run has. With `on_failure: stop_pipeline` it also waits for stopped writers. After an
   error that needs a person it waits up to five minutes, or until the pipeline's file has changed.
2. `follow` repeats rounds for the time that `for` gives. A round makes a binding of what is new in Kafka,
   captures, audits and publishes it, and delivers it to every writer whose gate is open: the steps and the
   rules of `<pipeline>.replicate`. A round that finds nothing new costs one request to Kafka. Rounds over a
   few records work without Spark. Every minute it logs rounds, records, latencies and lag; every five minutes
   it compares a sample of every target with the log. It merges small files of segments that have closed.
3. `find_stopped` and `start_resume` start `<pipeline>.resume` for writers that stopped.
4. `check_gates` fails the run while a failure keeps a writer stopped.
5. Where a writer has `on_change: rebuild`, `find_changed` and `start_rebuild` start `<pipeline>.rebuild` for
   those whose settings in the file differ from those that the run has delivered with.

Where every gate is open, 3 and 4 are skipped, and 5 where nothing has changed, so that the next run begins
sooner.

`<pipeline>.replicate` may run beside it: the two take turns, and both succeed. Operators' commands wait for a
round to end, which takes a second or two.

### Parameters

None. The pipeline's file has `follow: {every: 1s, for: 10m}`.

### When it fails, and repairs itself

A round that is killed at any point is finished by the next one, of this DAG or of `<pipeline>.replicate`. The
task `follow` is retried twice; then the run fails, and the next run begins at once. A lost engine, Kafka or
Cassandra is one clear error of the task; the next run's first task waits for the engine. SIGTERM ends the run
after its round.

### When a person must step in

* Kafka has lost records, or a capture fails its audit: the log's gate closes, the run fails, and the next
  run's first task waits. Repair the cause and run `<pipeline>.replicate`, or accept the loss or finding with
  `tidemark log accept`.
* A topic does not exist, or is compacted, or another error that a retry only meets again: the run fails, and
  the next run's first task shows the error while it waits. Repair the cause.
* Such an error of one writer, such as a target topic that does not exist: the run follows the others to
  its end and fails then. The next run tries the writer again.
* A writer stops: the run ends after the round, starts a resume and fails. Later runs leave the writer out
  until its gate opens; with `on_failure: stop_pipeline` they wait. See `<pipeline>.replicate`.

### What it returns

* `follow`: rounds, idle rounds, records, p50 and p99 in seconds from Kafka's timestamp until every target has
  a record, the lag of the last round, the mean time of a round, why the run ended (`over`, `gate closed`,
  `stopped`), the writers whose gates are closed, and those that have changed.
* `check_gates`: the state of every writer's gate; skipped, like `find_stopped`, where `follow` found all
  open.
"""

from datetime import timedelta

from airflow.sdk import DAG, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import OnChange
from tidemark_airflow.dag_defaults import START, Tag, task_defaults
from tidemark_airflow.operators.deliver import DeliverOperator
from tidemark_airflow.sensors.follow import FollowSensor
from tidemark_airflow.tasks.gates import check_gates, resume_stopped
from tidemark_airflow.tasks.rebuild import rebuild_changed


def follow(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    rebuilds = any(writer.on_change is OnChange.REBUILD for writer in pipeline.writers)
    with DAG(
        dag_id=f"{pipeline.name}.follow",
        dag_display_name=f"{pipeline.name}: follow",
        description="Kafka to the commit log and every writer, in rounds a second apart",
        doc_md=__doc__,
        schedule="@continuous",
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults(),
        tags=[Tag.TIDEMARK, Tag.REPLICATION, pipeline.name],
    ) as dag:
        ready = FollowSensor(
            task_id="wait_until_ready",
            pipeline=pipeline.name,
            doc_md="Wait for the engine, an open log gate and free leases, without holding a worker.",
        )
        rounds = DeliverOperator(
            task_id="follow",
            pipeline=pipeline.name,
            app="follow",
            about_gates=["find_stopped", "check_gates"],
            about_changes=["find_changed"] if rebuilds else [],
            arguments=["--run-id", "{{ run_id }}"],
            conn_id=pipeline.spark.connection,
            doc_md="Repeat rounds until the time of this run is over or a writer stops.",
        )
        stopped, start_resume = resume_stopped(pipeline.name)
        still_closed = check_gates.override(trigger_rule=TriggerRule.ALL_DONE)(pipeline.name)
        ready >> rounds >> stopped
        start_resume >> still_closed
        rounds >> still_closed
        if rebuilds:
            # The next run waits for these tasks, so no long pauses.
            changed, start_rebuild = rebuild_changed(
                pipeline.name, retries=1, retry_delay=timedelta(seconds=5)
            )
            rounds >> changed >> start_rebuild
    return dag


for declared in load_pipelines().pipelines:
    if declared.follow is not None:
        globals()[f"{declared.name}_follow"] = follow(declared)
