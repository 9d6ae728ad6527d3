"""Matches differences with the declared rules, and counts them. Pure.

The first rule that covers a row explains it. A changed row may need several rules, one for each column that
differs, and is explained only where every one of them is covered. Counts do not depend on the order of the
rows and add up, so pieces of the comparison may be counted in different processes. Rows are not kept: only a
few of each group are shown, always the same ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tidemark.delivery.transforms.document import Unfit
from tidemark.delivery.transforms.skip import SkipOperator, comparison
from tidemark.pipeline.expect import Condition, Expectation, RowChange
from tidemark.verification.renditions.difference import Fields, RowDifference, plain

MOST_SAMPLES = 5
"""The most rows that are shown of each rule, and of each kind of unexplained difference."""

Group = tuple[int, ...]
"""The numbers of the rules that explain a row; empty for none."""


@dataclass(frozen=True, slots=True, order=True)
class Sample:
    """A row that is shown.

    Attributes:
        where: Which row it is.
        change: How it differs.
        said: The difference as a sentence.
    """

    where: str
    change: str
    said: str


@dataclass(slots=True)
class DifferenceTally:
    """The counts of some compared rows. Picklable, and adds up with others.

    Attributes:
        rows: How many rows were compared.
        changes: How many rows differ, by how they differ.
        columns: How many rows differ in a column.
        by_rule: How many rows each rule explains, by its number.
        unexplained: How many rows no rule explains.
        samples: Rows that are shown, by how they differ and the rules that explain them.
        ids: Those of the watched ids that a difference is about.
    """

    rows: int = 0
    changes: dict[RowChange, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    by_rule: dict[int, int] = field(default_factory=dict)
    unexplained: int = 0
    samples: dict[tuple[Group, RowChange], list[Sample]] = field(default_factory=dict)
    ids: set[int] = field(default_factory=set)

    @property
    def total(self) -> int:
        """How many rows differ."""
        return sum(self.changes.values())

    def note(self, difference: RowDifference, rules: Group) -> None:
        """Count one difference that these rules explain."""
        change = difference.change
        _add(self.changes, change, 1)
        for column in difference.columns:
            _add(self.columns, column, 1)
        for number in rules:
            _add(self.by_rule, number, 1)
        self.unexplained += not rules
        kept = self.samples.get((rules, change), [])
        if len(kept) < MOST_SAMPLES or difference.where <= kept[-1].where:  # a sentence takes long to make
            sample = Sample(difference.where, change.value, difference.said)
            self._keep((rules, change), [sample])

    def add(self, other: "DifferenceTally") -> None:
        """Add the counts of other rows."""
        self.rows += other.rows
        self.unexplained += other.unexplained
        self.ids |= other.ids
        for change, count in other.changes.items():
            _add(self.changes, change, count)
        for column, count in other.columns.items():
            _add(self.columns, column, count)
        for number, count in other.by_rule.items():
            _add(self.by_rule, number, count)
        for group, samples in other.samples.items():
            self._keep(group, samples)

    @classmethod
    def sum(cls, tallies: Iterable["DifferenceTally"]) -> "DifferenceTally":
        """The counts of all rows."""
        total = cls()
        for one in tallies:
            total.add(one)
        return total

    def _keep(self, group: tuple[Group, RowChange], samples: Sequence[Sample]) -> None:
        kept = self.samples.setdefault(group, [])
        if len(kept) < MOST_SAMPLES or samples[0] < kept[-1]:
            kept[:] = sorted([*kept, *samples])[:MOST_SAMPLES]


@dataclass(frozen=True)
class RuleMatcher:
    """Decides which rules explain a difference. Picklable: it is sent to tasks.

    Attributes:
        rules: The declared rules; none for an exact comparison.
        watched: Ids that were acknowledged for one of the renditions only.
    """

    rules: tuple[Expectation, ...] = ()
    watched: frozenset[int] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        return {"rules": self.rules, "watched": self.watched}  # functions are compiled again

    def explain(self, difference: RowDifference) -> Group:
        """The numbers of the rules that explain a difference, ascending; empty where it is unexplained."""
        if difference.change is not RowChange.CHANGED:
            found = self._first(difference, None)
            return () if found is None else (found,)
        needed = {self._first(difference, column) for column in difference.columns}
        return () if None in needed else tuple(sorted(number for number in needed if number is not None))

    def judge(self, tally: DifferenceTally, difference: RowDifference, ids: Iterable[int] = ()) -> None:
        """Match a difference and count it; ``ids`` are those of its messages."""
        tally.note(difference, self.explain(difference))
        tally.ids.update(self.watched.intersection(ids))

    def _first(self, difference: RowDifference, column: str | None) -> int | None:
        for number, (rule, holds) in enumerate(zip(self.rules, self._conditions, strict=True)):
            covers = rule.column is None or (column is not None and _covers(rule.column, column))
            if rule.rows is difference.change and covers and holds(difference):
                return number
        return None

    @cached_property
    def _conditions(self) -> tuple[Callable[[RowDifference], bool], ...]:
        return tuple(_all_of(rule.conditions) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule, and how many rows it explains.

    Attributes:
        rule: The rule.
        matched: How many rows match it.
    """

    rule: Expectation
    matched: int

    @property
    def beyond(self) -> int:
        """How many of them are more than the rule allows."""
        most = self.rule.at_most
        return 0 if most is None else max(self.matched - most, 0)


def outcomes(rules: Sequence[Expectation], tally: DifferenceTally) -> tuple[RuleOutcome, ...]:
    """What became of each rule."""
    return tuple(RuleOutcome(rule, tally.by_rule.get(number, 0)) for number, rule in enumerate(rules))


def explained_rows(tally: DifferenceTally, found: Iterable[RuleOutcome]) -> int:
    """How many differing rows are explained. Rows beyond the limit of a rule are not."""
    return max(tally.total - tally.unexplained - sum(one.beyond for one in found), 0)


def _covers(declared: str, column: str) -> bool:
    """Whether a rule for a column is about a column or one of its fields: ``value`` covers
    ``value.owner``."""
    return column == declared or column.startswith(f"{declared}.")


def _all_of(conditions: Sequence[Condition]) -> Callable[[RowDifference], bool]:
    tests = [_test(one) for one in conditions]
    return lambda difference: all(test(difference) for test in tests)


def _test(condition: Condition) -> Callable[[RowDifference], bool]:
    holds = comparison(condition.field, SkipOperator(condition.operator), condition.match)

    def test(difference: RowDifference) -> bool:
        row = _row(difference, condition.is_old)
        if row is None:
            return False
        try:
            return holds(plain(row.get(condition.field)))
        except Unfit:  # such as a null, which is neither more nor less than a number
            return False

    return test


def _row(difference: RowDifference, is_old: bool | None) -> Fields | None:
    if is_old is None:
        return difference.old if difference.old is not None else difference.new
    return difference.old if is_old else difference.new


def _add(counts: dict[Any, int], key: Any, count: int) -> None:
    counts[key] = counts.get(key, 0) + count


def shown_counts(counts: Mapping[RowChange, int]) -> str:
    """Counts of differing rows in words: ``1 missing, 12 changed``."""
    found = (f"{counts[change]:,} {change}" for change in RowChange if counts.get(change))
    return ", ".join(found) or "no differences"
