"""audit: evaluates expectations (Great Expectations) on a capture before it is published.

It evaluates the statistics of the captured files, so it does not read the messages, unless the pipeline's own
suite has expectations on messages. It changes and publishes nothing: ``publish`` decides by its record.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any

from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.expectations import ExpectationDeclaration, Suite
from tidemark.log.model.audit_result import CRITICAL, Judgement
from tidemark.log.model.statistics import FileStatistics

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch

SHOWN = 5
"""The number of violating files or messages that a result names."""
MOST = 100
"""The greatest number of violating messages that are fetched, which bounds the memory."""
LONGEST_VALUE, LONGEST_TEXT = 40, 400
"""The greatest length of a message's content, and of any other text, in results."""


@with_fields
class BadExpectation(LogError):
    """An expectation of the pipeline's suite that Great Expectations cannot evaluate."""

    needs_person = True

    pipeline: str
    expectation: str
    problem: str

    text = (
        "{pipeline}: {expectation} in the pipeline's suite cannot be judged: {problem}. Nothing was let "
        "pass; correct the suite in include/expectations and clear the task that says so."
    )

    def __post_init__(self) -> None:
        self.problem = _short(self.problem.strip().rstrip("."), LONGEST_TEXT)
        super().__post_init__()


def prepare_audit() -> None:
    """Import Great Expectations: that takes seconds, which a caller can spend while Spark starts."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "False")
    import great_expectations  # noqa: F401  # the import is the point


def audit_files(
    pipeline: str, statistics: Sequence[FileStatistics], rows_read: int, suite: Suite
) -> list[Judgement]:
    """Evaluate the built-in rules, then those of the pipeline's suite, on the statistics of a capture."""
    import pandas as pd

    rows = [{**asdict(s), "width": s.width} for s in sorted(statistics, key=lambda s: s.first_id)]
    frame = pd.DataFrame(rows, columns=[*FileStatistics.__dataclass_fields__, "width"])
    frame["gap_before"] = frame["first_id"] - frame["last_id"].shift(fill_value=-1)
    batch = pandas_batch(frame, "captured_files")
    declared = [*_always(rows_read), *((d.notes or d.type, d) for d in suite.captured_files)]
    return judge(pipeline, batch, declared, ("path", "first_id", "last_id"), most=max(len(rows), MOST))


def judge(
    pipeline: str,
    batch: "Batch",
    declared: Sequence[tuple[str, ExpectationDeclaration]],
    identified_by: Sequence[str],
    most: int = MOST,
) -> list[Judgement]:
    """Evaluate expectations, each with a title, on a batch of rows.

    Violating rows, at most ``most``, are identified by the columns ``identified_by``.
    """
    import great_expectations as gx

    # Results are not in the order of the expectations, so each carries its index.
    expectations = [_build(pipeline, one, {"place": place}) for place, (_, one) in enumerate(declared)]

    def evaluate(places: Sequence[int], result_format: Any) -> dict[int, Any]:
        suite = gx.ExpectationSuite("audit", expectations=[expectations[place] for place in places])
        results = batch.validate(suite, result_format=result_format).results
        told: list[Any] = [result.to_json_dict() for result in results]
        return {one["expectation_config"]["meta"]["place"]: one for one in told}

    # To find violating rows takes most of an evaluation, so only the rules that are not met look for them.
    try:
        found = evaluate(range(len(declared)), "BOOLEAN_ONLY")
        violated = [place for place, one in found.items() if not one["success"]]
        if violated:
            found |= evaluate(
                violated,
                {
                    "result_format": "SUMMARY",  # COMPLETE would fetch every violating row
                    "partial_unexpected_count": most,
                    "unexpected_index_column_names": [*identified_by],
                },
            )
    finally:
        # The source of the batch stays, and would keep these rows until the next batch.
        kept = batch.data.execution_engine.batch_manager
        kept.reset_batch_cache()
        kept.batch_data_cache.clear()
    return [_judgement(pipeline, title, one, found[place]) for place, (title, one) in enumerate(declared)]


def _always(rows_read: int) -> Iterator[tuple[str, ExpectationDeclaration]]:
    """The built-in rules for every capture, with their titles."""
    greater, equal = (
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
    )
    between = "expect_column_values_to_be_between"

    def rule(type_: str, severity: Any = CRITICAL, **kwargs: Any) -> ExpectationDeclaration:
        return ExpectationDeclaration(type=type_, kwargs=kwargs, severity=severity)

    yield (
        "offsets begin in the bound range",
        rule(greater, column_A="first_offset", column_B="lower", or_equal=True),
    )
    yield "offsets end in the bound range", rule(greater, column_A="upper", column_B="last_offset")
    yield "offsets grow", rule(between, column="disorder", max_value=0)
    yield "ids are those of the binding", rule(between, column="misnumbered", max_value=0)
    yield "ids are unique", rule(between, column="gap_before", min_value=1)
    yield (
        "rows written = rows read",
        rule(
            "expect_column_sum_to_be_between",
            column="rows_written",
            min_value=rows_read,
            max_value=rows_read,
        ),
    )
    yield "no namespace outside the declaration", rule(between, column="strangers", max_value=0)
    # Transaction markers and aborted records leave holes, so this is only a warning.
    yield "every offset has a record", rule(equal, "warning", column_A="width", column_B="rows_written")


def pandas_batch(frame: Any, name: str) -> "Batch":
    """A batch of a pandas DataFrame."""
    return _whole("add_pandas", frame, name)


def spark_batch(frame: Any, name: str) -> "Batch":
    """A batch of a Spark DataFrame, which the engine does not keep.

    By default Great Expectations has it kept, and an engine that stays up would never let go of it. Most
    metrics of an evaluation are computed by one query, and a query reads only the columns that it needs.
    """
    return _whole("add_spark", frame, name, persist=False)


def _whole(add_source: str, frame: Any, name: str, **settings: Any) -> "Batch":
    definition = _whole_frames(add_source, name, get_ident(), **settings)
    batch: Batch = definition.get_batch(batch_parameters={"dataframe": frame})
    return batch


@lru_cache(maxsize=16)
def _whole_frames(add_source: str, name: str, thread: int, **settings: Any) -> Any:
    """The definition of batches that are whole DataFrames of one kind.

    Kept, because to make a context and a source takes longer than to evaluate a small capture. Every thread
    has its own: all batches of a source have the same id, under which their rows are found.
    """
    prepare_audit()
    import great_expectations as gx

    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    source = getattr(context.data_sources, add_source)(name, **settings)
    return source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all")


def _build(pipeline: str, declared: ExpectationDeclaration, meta: dict[str, int]) -> Any:
    from great_expectations.exceptions.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.metadata_types import FailureSeverity
    from great_expectations.expectations.registry import (
        get_expectation_impl,
        list_registered_expectation_implementations,
    )
    from pydantic.v1 import ValidationError

    severity = FailureSeverity(declared.severity)
    try:
        return get_expectation_impl(declared.type)(**declared.kwargs, severity=severity, meta=meta)
    except ExpectationNotFoundError:
        alike = get_close_matches(declared.type, list_registered_expectation_implementations(), 1)
        hint = f" (did you mean {alike[0]}?)" if alike else ""
        raise BadExpectation(pipeline, declared.type, f"there is no such expectation{hint}") from None
    except ValidationError as error:
        problems = "; ".join(f"{e['loc'][-1]}: {e['msg']}" for e in error.errors())
        raise BadExpectation(pipeline, declared.type, problems) from None


def _judgement(
    pipeline: str, title: str, declared: ExpectationDeclaration, found: Mapping[str, Any]
) -> Judgement:
    problem = _exception(found["exception_info"])
    if problem:
        raise BadExpectation(pipeline, declared.type, problem)
    success, result = bool(found["success"]), found["result"]
    return Judgement(
        title=title,
        expectation=declared.type,
        severity=declared.severity,
        success=success,
        detail="" if success else _detail(result),
        ids=None if success else _ids(result),
    )


def _ids(result: Mapping[str, Any]) -> tuple[int, int] | None:
    rows = result.get("partial_unexpected_index_list") or []
    if not rows or len(rows) < result["unexpected_count"]:
        return None
    firsts = [row.get("first_id", row.get("id")) for row in rows]
    lasts = [row.get("last_id", row.get("id")) for row in rows]
    # Rows of delivered heads have no ids.
    return None if None in firsts else (min(firsts), max(lasts))


def _detail(result: Mapping[str, Any]) -> str:
    rows = result.get("partial_unexpected_index_list") or []
    if not rows:
        words = {
            "observed_value": "found",
            "partial_unexpected_list": "found",
            "partial_missing_list": "misses",
        }
        said = [f"{word} {result[key]}" for key, word in words.items() if result.get(key) not in (None, [])]
        return _short("; ".join(said), LONGEST_TEXT) or "not as expected"
    more = result["unexpected_count"] - SHOWN
    return "; ".join(_row(row) for row in rows[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _row(row: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in row.items() if name not in ("first_id", "last_id")}
    return ", ".join(f"{name} {_short(str(value), LONGEST_VALUE)}" for name, value in shown.items())


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _exception(info: Mapping[str, Any]) -> str | None:
    """The error that prevented an evaluation, if any; its form depends on where it was raised."""
    infos = [info] if "raised_exception" in info else list(info.values())
    messages = [i["exception_message"] for i in infos if i.get("raised_exception")]
    if not messages:
        return None
    lines = [line.strip(" :") for line in str(messages[0]).splitlines()]
    # Spark's first line only names the call.
    said = [line for line in lines if line and not line.startswith("An error occurred while calling")]
    return said[0] if said else "Great Expectations does not say why"
