"""Commands that show a plan first: the options they share, and what they print."""

import getpass
import json
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tidemark.cli.options import PipelineName
from tidemark.cli.plans import PlanOptions, plan_options

pytestmark = pytest.mark.unit


@pytest.fixture
def called():
    """An application with one such command, and the options of its last call."""
    app, seen = typer.Typer(), []

    @app.command()
    @plan_options
    def drop(
        pipeline: PipelineName,
        count: Annotated[int, typer.Option(help="How many.")] = 1,
        *,
        options: PlanOptions,
    ) -> None:
        """Drop something."""
        options.require_reason("say why it may go")
        seen.append((pipeline, count, options))
        options.print_result({"executed": options.execute}, [f"{pipeline}: drop {count}"])

    return lambda *arguments: (CliRunner().invoke(app, list(arguments)), seen[-1] if seen else None)


def test_without_execute_a_command_only_shows_its_plan(called):
    ended, (pipeline, count, options) = called("orders", "--count", "2")
    assert (pipeline, count) == ("orders", 2)
    assert options == PlanOptions(reason="", execute=False, who=getpass.getuser(), as_json=False)
    assert ended.output.splitlines() == [
        "orders: drop 2",
        'Nothing was changed. Add --execute --reason "…" to do it.',
    ]


def test_with_execute_the_operator_is_named(called):
    ended, (_, _, options) = called("orders", "--execute", "--reason", " known ", "--by", "ann")
    assert options == PlanOptions("known", True, "ann", False)
    assert ended.output.splitlines()[-1] == "Done by ann."


@pytest.mark.parametrize("reason", [(), ("--reason", "  ")], ids=["none", "blank"])
def test_execute_needs_a_reason(called, reason):
    ended, call = called("orders", "--execute", *reason)
    assert (ended.exit_code, call, "say why it may go" in ended.output) == (2, None, True)


def test_json_is_the_document_alone(called):
    ended, _ = called("orders", "--json")
    assert json.loads(ended.output) == {"executed": False}


def test_the_help_lists_the_command_s_own_parameters_first(called):
    ended, _ = called("--help")
    shown = [ended.output.index(name) for name in ("--count", "--reason", "--execute", "--by", "--json")]
    assert (shown == sorted(shown), "Drop something." in ended.output) == (True, True)
