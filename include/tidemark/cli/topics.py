"""``tidemark topics``: the topics that a pipeline reads, and those that its writers send to."""

from typing import Annotated

import typer

from tidemark.cli.options import Json, PipelineName, print_json

app = typer.Typer(help="Kafka topics of a pipeline.", no_args_is_help=True)


@app.callback()
def topics() -> None:
    """Kafka topics of a pipeline."""


@app.command()
def create(
    pipeline: PipelineName,
    writer: Annotated[
        str | None, typer.Argument(help="A kafka writer: its topic instead of the pipeline's source topics.")
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; may be repeated.")] = None,
    partitions: Annotated[int | None, typer.Option(min=1, help="Instead of the number in the file.")] = None,
    replication: Annotated[int | None, typer.Option(min=1, help="Copies of every partition.")] = None,
    retention: Annotated[str | None, typer.Option(help="Such as 7d, or forever.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also a topic that was used before.")] = False,
    as_json: Json = False,
) -> None:
    """Create the missing topics of a pipeline; existing ones are shown and never changed."""
    from tidemark.app.topics import create_topics_of
    from tidemark.cli.open_pipeline import open_pipeline
    from tidemark.kafka.topic_shape import TopicShape
    from tidemark.pipeline.quantities import parse_retention

    try:
        kept = parse_retention(retention) if retention is not None else None
    except ValueError as error:
        raise typer.BadParameter(f"{retention!r} {error}", param_hint="--retention") from None
    asked = TopicShape(partitions, replication, kept)
    outcomes = create_topics_of(open_pipeline(pipeline), writer, topic or [], asked, again=again)
    if as_json:
        print_json({"pipeline": pipeline, "topics": [outcome.to_dict() for outcome in outcomes]})
    else:
        for outcome in outcomes:
            typer.echo(outcome.line, err=outcome.problem is not None)
    raise typer.Exit(1 if any(outcome.problem for outcome in outcomes) else 0)
