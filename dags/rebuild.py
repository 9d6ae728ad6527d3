"""Rebuild a writer's output from the log: with the settings that the file has now, beside the present one.

### What it does

1. `register` shows what would be built, from where, which settings differ and how long it may take. Unless
   the run is dry, it declares the next rendition of the writer, at a place of its own.
2. `build` delivers to it until it has everything. Readers do not see it.
3. `verify` compares it with the rendition that readers use. The link *Differences* shows the report.
4. `approve` asks a person, who sees the report.
5. `hand_over` lets readers take it: it is compared again under the leases of both renditions, unless nothing
   has changed since, and a difference that is not explained refuses the handover. Deliveries to both wait as
   long as that takes.
6. `soak` waits, without holding a worker, while readers can return to the earlier rendition, which is still
   delivered to. It ends early where they have returned, and goes on where a later rebuild overtakes this one.
7. `retire` takes the earlier rendition out of use for good and drops its tables or its folder; also those of
   every other rendition that readers have left and whose time to return is over. `register` names them.

`replicate` and `follow` start it by themselves for writers with `on_change: rebuild` whose settings in the
file have changed, once for each change, and never to settings that an earlier rendition had.

### Parameters

* `writer`: the writer. `reason`: why; kept for ever.
* `dry_run`: only show the plan. Runs by hand and backfills are dry unless you switch it off; runs on schedule
  are never dry. There is no schedule.
* `mode`: `exact`: both renditions must be the same; `explained`: every difference must match a rule under
  `expect:`. Left out: `explained` where the writer has such rules.
* `approve`: `person`, or `automatic`: a verification without unexplained differences is enough.
* `soak`: how long readers can return, and the earlier rendition is delivered to, such as `24h`. Left out:
  what the file says.
* `drop`: also drop the tables of a journal, or the topic, of what is retired. Others are always dropped.

### When it fails, and repairs itself

Every task goes on with what is done: the same run declares one rendition, `build` continues where the last
binding was finished, and a second `hand_over` finds the first. A handover that meets a delivery is retried.
A failed run can be cleared, or started again: a rendition with the same settings that is not finished yet is
continued.

### When a person must step in

* The plan is refused: the task says why, such as a compacted log.
* A message fails in the build: resume the rendition's consumer (`<writer>.r<number>`), or acknowledge the
  message for it; then clear `build`.
* `verify` finds differences that are not explained: declare what is meant under `expect:`, or correct the
  settings and start again. `tidemark renditions abandon` gives the rendition up.
* The approval waits under *Required Actions*. A rejection abandons nothing: the rendition stays, and goes on
  being delivered to.
* `retire` fails while a reader or a pin holds an old time: clear it later, or run `tidemark renditions
  retire`.

### What it returns

* `build`: position and messages. `verify`: the report. `hand_over`: the time from which on readers take the
  rendition, and the one that they used before. `retire`: the state of the earlier rendition, and of each
  other one that was retired. `tidemark renditions` shows all of it.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.dag_defaults import START, Tag, task_defaults
from tidemark_airflow.dry_run import dry_run_param
from tidemark_airflow.operators.rendition import (
    ApproveRendition,
    HandOverOperator,
    VerifyRenditionOperator,
)
from tidemark_airflow.operators.spark_app import SparkAppOperator
from tidemark_airflow.sensors.soak import SoakSensor
from tidemark_airflow.tasks.rebuild import (
    CONSUMER,
    DURATION,
    HOLDER,
    MESSAGES,
    MODE,
    NUMBER,
    WRITER,
    Approve,
    decide,
    follow_approval,
    register,
    retire,
)


def rebuild(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    writers = [writer.name for writer in pipeline.writers]
    with DAG(
        dag_id=f"{pipeline.name}.rebuild",
        dag_display_name=f"{pipeline.name}: rebuild a writer's output",
        description="The next rendition of a writer: build, verify, approve, hand over, retire",
        doc_md=__doc__,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=16,  # one soaks for a day while others are built; no two runs do harm to each other
        default_args=task_defaults(),
        params={
            "writer": Param(writers[0], type="string", enum=writers, description="The writer."),
            "reason": Param(None, type=["null", "string"], maxLength=500, description="Why; kept for ever."),
            "dry_run": dry_run_param(),
            "mode": Param(
                None,
                type=["null", "string"],
                enum=[None, "exact", "explained"],
                description="How it is compared; left out, explained where the writer has rules.",
            ),
            "approve": Param(
                Approve.PERSON.value,
                type="string",
                enum=[one.value for one in Approve],
                description="Who allows the handover: a person, or a clean verification.",
            ),
            "soak": Param(
                None,
                type=["null", "string"],
                pattern=DURATION,
                description="How long readers can return, such as 24h; left out, what the file says.",
            ),
            "drop": Param(
                False, type="boolean", description="Also drop a journal's tables, or a topic, at the end."
            ),
        },
        tags=[Tag.TIDEMARK, Tag.RENDITIONS, pipeline.name],
    ) as dag:
        registered = register(pipeline.name)
        build = SparkAppOperator(
            task_id="build",
            pipeline=pipeline.name,
            app="deliver",
            arguments=["--consumer", CONSUMER, "--until-caught-up", "--holder", HOLDER],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            execution_timeout=timedelta(days=7),  # logs are long; a retry goes on where it stopped
            doc_md="Deliver to the new rendition until it has everything; readers do not see it.",
        )
        rendition = ["--writer", WRITER, "--number", NUMBER, "--mode", MODE]
        verify = VerifyRenditionOperator(
            task_id="verify",
            pipeline=pipeline.name,
            app="verify_rendition",
            arguments=rendition,
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            retries=5,  # deliveries hold the leases for a while
            doc_md="Compare it with the rendition that readers use; fail at what is not explained.",
        )
        approve = ApproveRendition(
            task_id="approve",
            pipeline=pipeline.name,
            execution_timeout=None,
            doc_md="Ask a person whether readers may take it; shows the report.",
        )
        hand_over = HandOverOperator(
            task_id="hand_over",
            pipeline=pipeline.name,
            app="verify_rendition",
            arguments=[*rendition, "--holder", HOLDER],
            messages=MESSAGES,
            conn_id=pipeline.spark.connection,
            retries=5,  # deliveries hold the leases for a while
            trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
            doc_md="Compare it once more under the leases of both, and let readers take it.",
        )
        soak = SoakSensor(
            task_id="soak",
            pipeline=pipeline.name,
            writer=WRITER,
            execution_timeout=None,
            doc_md="Wait while readers can return to the earlier rendition; holds no worker.",
        )
        decided = decide()
        registered >> build >> verify >> decided >> [approve, hand_over]
        follow_approval(pipeline.name, approve.output) >> hand_over >> soak
        soak >> retire(pipeline.name, hand_over.output)
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_rebuild"] = rebuild(declared)
