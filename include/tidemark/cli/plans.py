"""Commands that show a plan before they change anything: their options, and carrying a plan out.

Such a command takes ``--reason``, ``--execute``, ``--by`` and ``--json``. Without ``--execute`` it only shows
its plan; ``--execute`` is refused without a reason.
"""

import functools
import getpass
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from tidemark.cli.options import By, Execute, Json, Reason, print_json

if TYPE_CHECKING:
    from tidemark.consensus.audit_trail import AuditEntry
    from tidemark.delivery.operator.action_plan import ActionPlan

NOTHING_TO_CHANGE = "Nothing was changed."
NOT_EXECUTED = 'Nothing was changed. Add --execute --reason "…" to do it.'


@dataclass(frozen=True)
class PlanOptions:
    """The options with which such a command was called."""

    reason: str
    execute: bool
    who: str
    """The operator: ``--by``, else the user who runs the command."""
    as_json: bool

    def require_reason(self, request: str = "say why") -> None:
        """Refuse ``--execute`` without a reason: exit code 2, with this request."""
        if self.execute and not self.reason:
            raise typer.BadParameter(request, param_hint="--reason")

    def audit_entry(self, action: str, about: str | None = None) -> "AuditEntry":
        """The audit entry of an action that is executed now."""
        from tidemark.clock import wall_clock
        from tidemark.consensus.audit_trail import AuditEntry

        return AuditEntry(action, self.who, self.reason, wall_clock(), about)

    def print_result(
        self,
        document: Mapping[str, Any],
        lines: Iterable[str],
        *,
        done: str | None = None,
        not_done: str = NOT_EXECUTED,
    ) -> None:
        """Print what was planned or done: the document with ``--json``, else the lines and a last one.

        The last line is ``done`` (by default, who did it) after ``--execute``, else ``not_done``.
        """
        if self.as_json:
            print_json(document)
            return
        for line in lines:
            typer.echo(line)
        typer.echo((done or f"Done by {self.who}.") if self.execute else not_done)


def plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the four options; it receives them as one keyword parameter ``options: PlanOptions``.

    Typer reads a command's parameters from its signature and calls it with keywords only, so the decorated
    function declares the four options in place of ``options``, at the end.
    """

    @functools.wraps(command)
    def call(*, reason: str, execute: bool, by: str | None, as_json: bool, **own: Any) -> None:
        command(**own, options=PlanOptions(reason.strip(), execute, by or getpass.getuser(), as_json))

    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != "options"]
    call.__signature__ = signature.replace(parameters=[*own, *_OPTIONS])  # type: ignore[attr-defined]
    return call


def _option(name: str, default: str | bool | None, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_OPTIONS = (
    _option("reason", "", Reason),
    _option("execute", False, Execute),
    _option("by", None, By),
    _option("as_json", False, Json),
)


def carry_out(plan: "ActionPlan", options: PlanOptions) -> None:
    """Show an operator's plan for a writer; with ``--execute`` carry it out, where it changes anything."""
    options.require_reason()
    executed = options.execute and plan.changes
    if executed:
        plan.execute(options.audit_entry(plan.action))
    options.print_result(
        {**plan.to_dict(), "who": options.who, "executed": executed},
        plan_lines(plan),
        done=None if plan.changes else NOTHING_TO_CHANGE,
        not_done=NOT_EXECUTED if plan.changes else NOTHING_TO_CHANGE,
    )


def plan_lines(plan: "ActionPlan") -> list[str]:
    """A plan for people: what is done to which writer, and the plan's own lines below."""
    return [f"{plan.pipeline}/{plan.writer}: {plan.action}", *(f"  {line}" for line in plan.lines)]
