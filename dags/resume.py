"""Resume a stopped writer: wait for its target, redeliver one message at a time, ask when one fails again.

### What it does

`wait_for_target` waits, without holding a worker, until the writer's target could be written to: it tries
what a delivery does (a file in the folder, a transaction, a write to the tables) and leaves nothing behind.
`redeliver` sends one message at a time from the position to the end of the binding that failed, each
acknowledged before the next, and opens the gate there; the next run of `replicate` goes on in bulk. It is
started by `replicate` when a gate closes for the first time over the same message or target, or by hand.
With another `action` it does what a person asks for.

### Parameters

`writer`: which one. `action`: `resume`, or `acknowledge` (let the message that failed pass unwritten, with a
copy in the dead letters; with `untried` also one that has not failed), `rewind` (deliver again what comes
after `id`), `stop`, `open`. `id` and `reason` belong to those; without a reason, Airflow's form and API
start no such run, and one that `bin/airflow` starts fails before it does anything.

### When it fails, and repairs itself

Every message may be sent twice and is there once; the position is made durable once a second. A run that was
killed is taken up by its retry where it was.

### When a person must step in

When the same has failed again: the run waits under *Required Actions* for an answer. *Retry* tries again,
*Stop* leaves the writer stopped. *Acknowledge and dead-letter* lets the message pass (its readers will never
see it); it needs a reason, and is offered only where a message failed: where the target did, no message is to
blame.

### What it returns

`redeliver`: position, number of messages, what failed. `check_gate`: how the writer stands.
"""

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.answers import Action
from tidemark_airflow.house import START, Tag, task_defaults
from tidemark_airflow.resume import (
    Question,
    TargetSensor,
    act,
    check_gate,
    choose,
    follow_answer,
    is_stuck,
    redeliver,
)


def resume(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    writers = [writer.name for writer in pipeline.writers]
    with DAG(
        dag_id=f"{pipeline.name}.resume",
        dag_display_name=f"{pipeline.name}: resume",
        description="A stopped writer goes on, one message at a time; or what a person does to it",
        doc_md=__doc__,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=max(len(writers), 2),
        is_paused_upon_creation=False,
        default_args=task_defaults(),
        params={
            "writer": Param(writers[0], type="string", enum=writers, description="The writer."),
            "action": Param(
                Action.RESUME.value,
                type="string",
                enum=[action.value for action in Action],
                description="What to do; everything but resume needs a reason.",
            ),
            "id": Param(
                None,
                type=["null", "integer"],
                minimum=-1,
                description="The message to acknowledge, or the position to go back to.",
            ),
            "reason": Param(
                None, type=["null", "string"], maxLength=500, description="Why; kept for ever with your name."
            ),
            "untried": Param(
                False, type="boolean", description="Acknowledge also a message that has not failed."
            ),
        },
        tags=[Tag.TIDEMARK, Tag.RESUME, pipeline.name],
    ) as dag:
        chosen = choose()
        waited = TargetSensor(
            task_id="wait_for_target",
            pipeline=pipeline.name,
            writer="{{ params.writer }}",
            doc_md="Wait until the writer's target answers.",
        )
        resumed = redeliver(pipeline.name)
        ask = Question(
            task_id="ask",
            pipeline=pipeline.name,
            writer="{{ params.writer }}",
            params={
                "reason": Param("", type="string", maxLength=500, description="Why; needed to acknowledge.")
            },
            execution_timeout=None,
            doc_md="Ask an operator what to do about what failed again.",
        )
        following = follow_answer(pipeline.name, resumed, ask.output)
        again = TriggerDagRunOperator.partial(
            task_id="resume_again",
            trigger_dag_id=f"{pipeline.name}.resume",
            skip_when_already_exists=True,
            doc_md="Go on with a resume of its own, where the answer asks for one.",
        ).expand_kwargs(following)
        checked = check_gate.override(trigger_rule=TriggerRule.NONE_FAILED)(pipeline.name)
        chosen >> waited >> resumed >> is_stuck(resumed) >> ask >> following >> again
        chosen >> act(pipeline.name) >> checked
        resumed >> checked
        following >> checked
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_resume"] = resume(declared)
