"""Resume a stopped writer: wait for its target, redeliver one message at a time, ask when one fails again.

### What it does

`wait_for_target` waits, without holding a worker, until the writer's target can be written to. It tries the
same operation as a delivery (a file in the folder, a transaction, a write to the tables) and leaves nothing
behind. `redeliver` sends one message at a time, from the position to the end of the binding that failed. Each
message is confirmed before the next is sent. At the end of the binding the gate opens, and the next run of
`replicate` delivers in bulk.

`replicate` starts this DAG when a gate closes for the first time over the same message or target. An operator
may start it too. With another `action` it carries out that action instead.

### Parameters

* `writer`: the writer. `action`: `resume`, or one of these, which need a `reason`:

* `acknowledge`: pass over the message `id` that failed, without writing it. A copy goes to the dead letters.
  With `untried`, also a message that has not failed.
* `rewind`: deliver everything after `id` again.
* `stop`, `open`: close or open the writer's gate.

Airflow's form and API refuse such a run without a reason. One that `bin/airflow` starts without a reason
fails before it changes anything.

### When it fails, and repairs itself

Delivery is idempotent: a message that is sent twice is stored once. The position is made durable once a
second. A run that was killed is continued by its retry.

### When a person must step in

When the same message or target has failed again: the run waits under *Required Actions* for an answer.
*Retry* tries again. *Stop* leaves the writer stopped. *Acknowledge and dead-letter* passes over the message,
so that readers of the target never see it. It needs a reason, and is offered only where a message failed:
where the target failed, no message is to blame.

### What it returns

* `redeliver`: position, number of messages, what failed. `check_gate`: the writer's position and gate.
"""

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, TriggerRule

from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark_airflow.dag_defaults import START, Tag, task_defaults
from tidemark_airflow.operators.resume_question import ResumeQuestion
from tidemark_airflow.sensors.target import TargetSensor
from tidemark_airflow.tasks.resume import act, check_gate, choose, follow_answer, is_stuck, redeliver
from tidemark_airflow.tasks.resume_request import ResumeAction


def resume(pipeline: Pipeline) -> DAG:
    """The DAG of one pipeline."""
    writers = [writer.name for writer in pipeline.writers]
    with DAG(
        dag_id=f"{pipeline.name}.resume",
        dag_display_name=f"{pipeline.name}: resume",
        description="Resume a stopped writer one message at a time, or carry out an operator's action",
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
                ResumeAction.RESUME.value,
                type="string",
                enum=[action.value for action in ResumeAction],
                description="What to do; everything but resume needs a reason.",
            ),
            "id": Param(
                None,
                type=["null", "integer"],
                minimum=-1,
                description="The message to acknowledge, or the position to go back to.",
            ),
            "reason": Param(
                None,
                type=["null", "string"],
                maxLength=500,
                description="Why; kept in the audit trail with your name.",
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
        ask = ResumeQuestion(
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
            doc_md="Start another resume, where the answer asks for one.",
        ).expand_kwargs(following)
        checked = check_gate.override(trigger_rule=TriggerRule.NONE_FAILED)(pipeline.name)
        chosen >> waited >> resumed >> is_stuck(resumed) >> ask >> following >> again
        chosen >> act(pipeline.name) >> checked
        resumed >> checked
        following >> checked
    return dag


for declared in load_pipelines().pipelines:
    globals()[f"{declared.name}_resume"] = resume(declared)
