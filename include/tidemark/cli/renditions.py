"""``tidemark renditions``: the versions of a writer's output, and how an operator changes which one is used.

Without a command it lists them. Every change shows its plan first; ``--execute --reason`` carries it out, and
a plan that is refused ends with exit code 1.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, WriterName, parse_wait, print_json
from tidemark.cli.plans import NOT_EXECUTED, NOTHING_TO_CHANGE, PlanOptions, plan_options

if TYPE_CHECKING:
    from tidemark.app.renditions.held_delivery import HandoverTools
    from tidemark.app.renditions.opened import WriterRenditions
    from tidemark.app.renditions.plan import RenditionPlan
    from tidemark.outputs.model.evidence import VerificationMode
    from tidemark.outputs.model.rendition import Signature

LIST = "list"
Number = Annotated[int, typer.Argument(metavar="N", min=1, help="Number of the rendition.")]
Newest = Annotated[
    int | None,
    typer.Argument(metavar="N", min=1, help="Number of the rendition; by default the newest unfinished one."),
]
Mode = Annotated[
    str | None,
    typer.Option(help="exact or explained; by default explained where the writer has `expect:` rules."),
]


class ListsByDefault(TyperGroup):
    """A group whose first argument may be a pipeline instead of a command: then it lists."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See ``click.Group``. More than two names can be no pipeline and writer, but a mistyped command."""
        names = [one for one in args if not one.startswith("-")]
        if args and args[0] not in self.commands and len(names) <= 2:
            return super().resolve_command(ctx, [LIST, *args])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    help="Renditions of writers: list, build, verify, handover, rollback, abandon, retire.",
    no_args_is_help=True,
    cls=ListsByDefault,
    subcommand_metavar="[COMMAND] PIPELINE [WRITER]",
)


@app.command(name=LIST)
def list_all(
    pipeline: PipelineName,
    writer: Annotated[str | None, typer.Argument(help="One writer; by default all.")] = None,
    as_json: Json = False,
) -> None:
    """List the renditions of a pipeline's writers: state, place, times, who made them and why, evidence."""
    from tidemark.app.renditions.listing import list_renditions
    from tidemark.app.renditions.opened import WriterRenditions
    from tidemark.cli.output.renditions import renditions_table

    opened = open_pipeline(pipeline)
    names = [writer] if writer else [one.name for one in opened.pipeline.writers]
    found = [list_renditions(WriterRenditions.of(opened, name)) for name in names]
    if as_json:
        documents = [one.to_dict() for one in found]
        print_json(documents[0] if writer else {"pipeline": pipeline, "writers": documents})
        return
    for one in found:
        Console().print(renditions_table(one))


@app.command()
@plan_options
def build(
    pipeline: PipelineName,
    writer: WriterName,
    number: Annotated[
        int | None,
        typer.Argument(metavar="N", min=1, help="Deliver to this one, with its own settings, instead."),
    ] = None,
    *,
    options: PlanOptions,
) -> None:
    """Build the next rendition with the settings of the file; one that was begun with them goes on."""
    from tidemark.app.renditions.catch_up import CatchingUp
    from tidemark.app.renditions.next_rendition import NextRendition

    renditions = _open(pipeline, writer)
    following = NextRendition(renditions)
    plan = following.plan() if number is None else CatchingUp(renditions, number).plan()

    def execute(signed: "Signature") -> dict[str, Any]:
        chosen = plan.number if number is not None else following.register(signed).number
        _show(f"{pipeline}/{writer}: rendition {chosen} is delivered to", options)
        return _catch_up(renditions, chosen, options)

    next_step = f"tidemark renditions verify {pipeline} {writer} {plan.number}"
    _carry_out(plan, options, execute, done=f"Built. Verify it: {next_step}")


@app.command()
def verify(
    pipeline: PipelineName,
    writer: WriterName,
    number: Newest = None,
    mode: Mode = None,
    as_json: Json = False,
) -> None:
    """Compare a rendition with the one that readers use; exit code 1 if they differ."""
    from tidemark.app.rendition_verification import verify_rendition
    from tidemark.app.renditions.hand_over import default_mode

    renditions = _open(pipeline, writer)
    chosen = _newest(renditions, number)
    wanted = _mode(mode) or default_mode(renditions)
    renditions.output.rendition(chosen)
    with _tools(renditions) as tools:
        report = verify_rendition(renditions.opened, writer, chosen, wanted, session=tools.session)
    if as_json:
        print_json(report.to_dict())
    else:
        for line in report.to_lines():
            typer.echo(line)
        if report.is_clean:
            typer.echo(f"Hand over: tidemark renditions handover {pipeline} {writer} {chosen}")
    raise typer.Exit(0 if report.is_clean else 1)


@app.command()
@plan_options
def handover(
    pipeline: PipelineName,
    writer: WriterName,
    number: Newest = None,
    force: Annotated[bool, typer.Option("--force", help="Without evidence; nothing is compared.")] = False,
    mode: Mode = None,
    soak: Annotated[
        str | None,
        typer.Option(help="How long readers can return, such as 24h; by default as the file says."),
    ] = None,
    *,
    options: PlanOptions,
) -> None:
    """Let readers take another rendition from now on; it is compared directly before."""
    from tidemark.app.renditions.hand_over import HandingOver

    renditions, length = _open(pipeline, writer), parse_wait(soak, "--soak")
    one = HandingOver(renditions, _newest(renditions, number), force, _mode(mode), length)
    plan = one.plan()

    def execute(signed: "Signature") -> dict[str, Any]:
        if force or one.is_proven():
            return {"h": one.carry_out(signed).h}
        if one.is_behind:
            _catch_up(renditions, plan.number, options)
        with _tools(renditions) as tools:
            return {"h": one.carry_out(signed, tools).h}

    _carry_out(plan, options, execute)


@app.command()
@plan_options
def rollback(
    pipeline: PipelineName,
    writer: WriterName,
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="By default the one that readers used before.")
    ] = None,
    *,
    options: PlanOptions,
) -> None:
    """Let readers return to a rendition that they used before."""
    from tidemark.app.renditions.hand_over import RollingBack

    renditions = _open(pipeline, writer)
    one = RollingBack(renditions, number)
    plan = one.plan()

    def execute(signed: "Signature") -> dict[str, Any]:
        if one.is_behind:
            _catch_up(renditions, plan.number, options)
        return {"h": one.carry_out(renditions.signature(signed.who, signed.why)).h}

    _carry_out(plan, options, execute)


@app.command()
@plan_options
def abandon(pipeline: PipelineName, writer: WriterName, number: Number, *, options: PlanOptions) -> None:
    """Give up a rendition that readers never used."""
    from tidemark.app.renditions.endings import Abandoning

    one = Abandoning(_open(pipeline, writer), number)

    def execute(signed: "Signature") -> dict[str, Any]:
        one.carry_out(signed)
        return {}

    _carry_out(one.plan(), options, execute)


@app.command()
@plan_options
def retire(
    pipeline: PipelineName,
    writer: WriterName,
    number: Number,
    drop_tables: Annotated[bool, typer.Option("--drop-tables", help="Drop a journal's tables too.")] = False,
    drop_topic: Annotated[bool, typer.Option("--drop-topic", help="Delete a topic too.")] = False,
    *,
    options: PlanOptions,
) -> None:
    """Take a rendition out of use for good, and drop what it has."""
    from tidemark.app.renditions.endings import Retiring
    from tidemark.writers.removal import DropOption

    chosen = {DropOption.TABLES: drop_tables, DropOption.TOPIC: drop_topic}
    one = Retiring(
        _open(pipeline, writer), number, frozenset(option for option, asked in chosen.items() if asked)
    )

    def execute(signed: "Signature") -> dict[str, Any]:
        one.carry_out(signed)
        return {}

    _carry_out(one.plan(), options, execute)


def _open(pipeline: str, writer: str) -> "WriterRenditions":
    from tidemark.app.renditions.opened import WriterRenditions

    return WriterRenditions.of(open_pipeline(pipeline), writer)


def _carry_out(
    plan: "RenditionPlan",
    options: PlanOptions,
    execute: Callable[["Signature"], dict[str, Any]],
    done: str | None = None,
) -> None:
    """Show a plan; with ``--execute`` carry it out, where it changes anything."""
    from tidemark.clock import wall_clock
    from tidemark.outputs.model.rendition import Signature

    options.require_reason()
    if options.execute:
        plan.require_possible()
    executed = options.execute and plan.changes
    if executed and not options.as_json:
        _print(plan_lines(plan))
    result: dict[str, Any] = {}
    if executed:
        # Events of a delivery are no part of a document.
        with redirect_stdout(sys.stderr) if options.as_json else nullcontext():
            result = execute(Signature(options.who, options.reason, wall_clock()))
    document = {**plan.to_dict(), **result, "who": options.who, "executed": executed}
    if options.as_json:
        print_json(document)
    else:
        if not executed:
            _print(plan_lines(plan))
        if not plan.changes:
            typer.echo(NOTHING_TO_CHANGE)
        elif executed:
            typer.echo(done or f"Done by {options.who}.")
        elif plan.refused:
            typer.echo(f"Refused: {plan.refused}", err=True)
        else:
            typer.echo(NOT_EXECUTED)
    if plan.refused:
        raise typer.Exit(1)


def plan_lines(plan: "RenditionPlan") -> list[str]:
    """A plan for people: what is done to which rendition, and the plan's own lines below."""
    return [plan.head, *(f"  {line}" for line in plan.lines)]


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _show(line: str, options: PlanOptions) -> None:
    """A line of progress; beside a JSON document it goes to stderr."""
    typer.echo(line, err=options.as_json)


def _catch_up(renditions: "WriterRenditions", number: int, options: PlanOptions) -> dict[str, Any]:
    """Deliver to a rendition until it has everything; many messages by Spark's tasks."""
    from tidemark.app.renditions.catch_up import CatchingUp
    from tidemark.app.shutdown import stop_requested
    from tidemark.cli.journal.verify import pipeline_spark

    holder, one = f"tidemark renditions build by {options.who}", CatchingUp(renditions, number)
    messages = int(one.plan().details["messages"])
    with stop_requested() as is_stopping:
        if messages <= renditions.opened.pipeline.limits.max_records_in_process:
            return one.carry_out(holder, is_stopping=is_stopping).to_dict()
        from tidemark.spark.jobs.deliver import reload_from, write_parts_with

        control, pipeline = renditions.opened.connections.control, renditions.pipeline
        with pipeline_spark(renditions.opened, "deliver") as spark:
            write, reload = write_parts_with(spark), partial(reload_from, control, pipeline)
            return one.carry_out(holder, write, is_stopping, reload).to_dict()


@contextmanager
def _tools(renditions: "WriterRenditions") -> "Iterator[HandoverTools]":
    """Where renditions are compared and delivered to: small logs in this process, others by Spark."""
    from tidemark.app.renditions.held_delivery import HandoverTools
    from tidemark.cli.journal.verify import pipeline_spark
    from tidemark.verification.renditions.here import Here

    opened = renditions.opened
    if opened.log.manifest.count <= opened.pipeline.limits.max_records_in_process:
        yield HandoverTools(Here())
        return
    from tidemark.spark.jobs.deliver import reload_from, write_parts_with
    from tidemark.spark.jobs.renditions import SparkEngine

    reload = partial(reload_from, opened.connections.control, renditions.pipeline)
    with pipeline_spark(opened, "verify_rendition") as spark:
        yield HandoverTools(SparkEngine(spark), write_parts_with(spark), reload)


def _newest(renditions: "WriterRenditions", number: int | None) -> int:
    """The given rendition, else the newest that is being built or was verified."""
    from tidemark.app.renditions.opened import newest_unfinished

    return number if number is not None else newest_unfinished(renditions).number


def _mode(text: str | None) -> "VerificationMode | None":
    from tidemark.outputs.model.evidence import VerificationMode

    if text is None:
        return None
    try:
        return VerificationMode(text)
    except ValueError:
        known = " or ".join(VerificationMode)
        raise typer.BadParameter(f"is {known}, not {text!r}", param_hint="--mode") from None
