"""Progress: one line per change where there is no terminal, moving lines where there is one."""

import io

import pytest
from rich.console import Console

from tidemark.embedded.display import display
from tidemark.embedded.jars.ivy import Fetching

pytestmark = pytest.mark.unit


def shown(terminal: bool, steps) -> str:
    out = io.StringIO()
    with display(Console(file=out, force_terminal=terminal, width=100)) as show:
        steps(show)
    return out.getvalue()


def fetch_all(show) -> None:
    show.fetching(Fetching(0, 60, ""))
    for number in range(60):
        show.fetching(Fetching(number, 60, f"jar-{number}.jar"))
        show.fetching(Fetching(number + 1, 60, ""))


def test_without_a_terminal_some_plain_lines_are_printed():
    lines = shown(False, fetch_all).splitlines()
    assert lines == ["jars: 0 of 60", "jars: 25 of 60", "jars: 50 of 60", "jars: 60 of 60"]


def test_without_a_terminal_long_and_bracketed_phases_stay_as_they_are():
    phase = "running at " + "x" * 150 + " [red]"
    assert shown(False, lambda show: show.service("kafka", phase)) == f"kafka: {phase}\n"


def test_on_a_terminal_jars_have_a_bar_and_services_a_phase():
    def steps(show) -> None:
        show.fetching(Fetching(7, 60, "jar-7.jar"))
        show.service("kafka", "starting [1]")

    text = shown(True, steps)
    assert "7 of 60" in text
    assert "jar-7.jar" in text
    assert "starting [1]" in text
