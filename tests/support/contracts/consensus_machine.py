"""Any sequence of commits, lost and late ones among them, against a plain model of ``Consensus``.

The model knows what reached the store and in which order, nothing of how an implementation finds out about
it. From that alone it says what every reader must see and which answers a commit may have got. Bodies are
never the same twice, so that rows tell whose they are.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.support.contracts.consensus_contract import given_key
from tests.support.contracts.flaky_consensus import Arrival, Fault, FlakyConsensus

from tidemark.consensus.objects import ABSENT, AFTER_EVERY_NAME, Change, Outpaced, RowRange, Undecided

CLIENTS = st.sampled_from(["anna", "bert", "carl"])
ROWS = st.sampled_from(["head", "t/1", "t/2", "t/3", "u"])
EDITS = st.dictionaries(ROWS, st.sampled_from(["put", "put", "put", "delete", "clear"]), max_size=4)
CLEARED = {
    "head": RowRange("", "t/2"),
    "t/1": RowRange("t/", "t/2"),
    "t/2": RowRange("t/2", "t/4"),
    "t/3": RowRange("t/1", "t/3"),
    "u": RowRange("t/2", AFTER_EVERY_NAME),
}
"""The range that goes with a row that is cleared; what else was to be written there is not."""
FAULTS = st.lists(st.sampled_from(Fault), min_size=1, max_size=6)
RIVAL_ROWS = st.sampled_from(["head", "rival"])
RIVALS = st.dictionaries(st.integers(0, 6), RIVAL_ROWS, min_size=1, max_size=2)
"""At which moments of a commit (three per attempt: it arrives, what was late has landed, before the answer)
another process commits, and to which row."""
AFTER_LANDING = {Fault.ANSWER_LOST: 2, Fault.LATE: 4}
"""The moment at which a commit that met this fault has just been applied."""
NO_RIVALS: Mapping[int, str] = {}


class Model:
    """One object: a version, rows, and which change made each version."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.changes: list[Change] = []

    @property
    def version(self) -> int:
        return ABSENT + len(self.changes)

    def take(self, arrival: Arrival) -> None:
        assert arrival.applied == (arrival.expected == self.version), "not what compare-and-set does"
        if arrival.applied:
            self.changes.append(arrival.change)
            for row in [row for row in self.rows if _is_gone(row, arrival.change)]:
                del self.rows[row]
            self.rows |= arrival.change.puts

    def versions_by(self, change: Change) -> list[int]:
        return [version for version, made in enumerate(self.changes, ABSENT + 1) if made is change]

    def shows(self, change: Change) -> bool:
        """Whether a reader would take the rows for this change's."""
        written = all(self.rows.get(row) == body for row, body in change.puts.items())
        return bool(change.puts) and written and not any(_is_gone(row, change) for row in self.rows)


def _is_gone(row: str, change: Change) -> bool:
    return row in change.deletes or any(gone.first <= row < gone.end for gone in change.ranges)


class ConsensusMachine(RuleBasedStateMachine):
    """Several clients and one object."""

    def __init__(self, flaky: FlakyConsensus) -> None:
        super().__init__()
        self.flaky, self.key, self.model = flaky, given_key(), Model()
        self.seen: dict[str, int] = {}
        """The version each client saw last."""
        self.taken, self.numbers = len(flaky.arrivals), count(1)

    # Reading

    @rule(client=CLIENTS, rows=st.lists(ROWS, unique=True))
    def read(self, client: str, rows: list[str]) -> None:
        snapshot = self.flaky.read(self.key, rows)
        there = {row: body for row, body in self.model.rows.items() if row in rows}
        assert (snapshot.version, dict(snapshot.rows)) == (self.model.version, there)
        self.seen[client] = snapshot.version

    @rule(
        client=CLIENTS,
        prefix=st.sampled_from(["", "t/", "none/"]),
        before=st.none() | ROWS,
        limit=st.integers(1, 4),
    )
    def scan(self, client: str, prefix: str, before: str | None, limit: int) -> None:
        snapshot = self.flaky.scan(self.key, prefix, before=before, limit=limit)
        names = [row for row in sorted(self.model.rows) if row.startswith(prefix)]
        names = [row for row in names if before is None or row < before][-limit:]
        there = [(row, self.model.rows[row]) for row in names]
        assert (snapshot.version, list(snapshot.rows.items())) == (self.model.version, there)
        self.seen[client] = snapshot.version

    # Committing

    @rule(client=CLIENTS, edits=EDITS, looks=st.booleans())
    def commit(self, client: str, edits: dict[str, str], looks: bool) -> None:
        self.attempt(client, edits, looks)

    @precondition(lambda self: self.model.version > ABSENT)
    @rule(client=CLIENTS, edits=EDITS, back=st.integers(1, 3))
    def commit_at_a_stale_version(self, client: str, edits: dict[str, str], back: int) -> None:
        self.commit_at(max(ABSENT, self.model.version - back), client, edits)

    @rule(client=CLIENTS, edits=EDITS, looks=st.booleans())
    def commit_and_lose_the_answer(self, client: str, edits: dict[str, str], looks: bool) -> None:
        self.attempt(client, edits, looks, [Fault.ANSWER_LOST])

    @rule(client=CLIENTS, edits=EDITS, looks=st.booleans())
    def commit_and_lose_the_request(self, client: str, edits: dict[str, str], looks: bool) -> None:
        self.attempt(client, edits, looks, [Fault.REQUEST_LOST])

    @rule(client=CLIENTS, edits=EDITS, looks=st.booleans())
    def commit_late(self, client: str, edits: dict[str, str], looks: bool) -> None:
        self.attempt(client, edits, looks, [Fault.LATE])

    @rule(client=CLIENTS, edits=EDITS, faults=FAULTS)
    def commit_through_a_storm(self, client: str, edits: dict[str, str], faults: list[Fault]) -> None:
        self.attempt(client, edits, True, faults)

    @rule(client=CLIENTS, edits=EDITS, fault=st.sampled_from(list(AFTER_LANDING)), row=RIVAL_ROWS)
    def commit_and_be_overtaken(self, client: str, edits: dict[str, str], fault: Fault, row: str) -> None:
        self.attempt(client, edits, True, [fault], {AFTER_LANDING[fault]: row})

    @rule(client=CLIENTS, edits=EDITS, faults=FAULTS, rivals=RIVALS)
    def commit_among_rivals(
        self, client: str, edits: dict[str, str], faults: list[Fault], rivals: dict[int, str]
    ) -> None:
        self.attempt(client, edits, True, faults, rivals)

    @rule()
    def what_is_under_way_lands(self) -> None:
        self.flaky.land()
        self.take_arrivals()

    # What must hold

    @invariant()
    def readers_see_what_the_model_says(self) -> None:
        snapshot = self.flaky.scan(self.key, "")
        assert snapshot.version == self.model.version
        assert list(snapshot.rows.items()) == sorted(self.model.rows.items())

    @invariant()
    def nothing_is_applied_twice(self) -> None:
        assert len({id(change) for change in self.model.changes}) == len(self.model.changes)

    def teardown(self) -> None:
        self.what_is_under_way_lands()
        self.readers_see_what_the_model_says()
        self.nothing_is_applied_twice()

    def attempt(
        self,
        client: str,
        edits: dict[str, str],
        looks: bool,
        faults: Sequence[Fault] = (),
        rivals: Mapping[int, str] = NO_RIVALS,
    ) -> None:
        if looks:
            self.read(client, [])
        self.commit_at(self.seen.get(client, ABSENT), client, edits, faults, rivals)

    def commit_at(
        self,
        expected: int,
        client: str,
        edits: dict[str, str],
        faults: Sequence[Fault] = (),
        rivals: Mapping[int, str] = NO_RIVALS,
    ) -> None:
        change = self.change(client, edits)
        moments = count()
        self.flaky.meanwhile = lambda: self.rival_may_commit(rivals.get(next(moments)))
        self.flaky.arm(*faults)
        outcome: int | Outpaced | Undecided
        try:
            outcome = self.flaky.commit(self.key, expected, change)
        except (Outpaced, Undecided) as error:
            outcome = error
        self.flaky.disarm()
        self.take_arrivals()
        made = self.model.versions_by(change)
        if isinstance(outcome, Undecided):
            assert len(faults) >= self.flaky.attempts, "given up too early"
            assert (outcome.key, outcome.expected) == (self.key, expected)
        elif isinstance(outcome, Outpaced):
            assert (outcome.key, outcome.expected) == (self.key, expected)
            assert expected < outcome.found <= self.model.version
            if made:
                assert self.model.version > expected + 1, "applied, the newest, and called outpaced"
                assert not self.model.shows(change), "applied, there for all to see, and called outpaced"
        else:
            assert (made, outcome) == ([expected + 1], expected + 1)
            self.seen[client] = outcome

    def rival_may_commit(self, row: str | None) -> None:
        """Another process, up to date and undisturbed, between two steps of a commit."""
        if row is not None:
            self.take_arrivals()
            change = self.change("rival", {row: "put"})
            self.flaky.commit_undisturbed(self.key, self.model.version, change)
            self.take_arrivals()

    def take_arrivals(self) -> None:
        """Let the model know what has reached the store."""
        for arrival in self.flaky.arrivals[self.taken :]:
            self.model.take(arrival)
        self.taken = len(self.flaky.arrivals)

    def change(self, client: str, edits: dict[str, str]) -> Change:
        body = f"{client} {next(self.numbers)}"
        ranges = [CLEARED[row] for row, edit in edits.items() if edit == "clear"]
        is_cleared = {row for row in edits if any(row in cleared for cleared in ranges)}
        puts = {row: body for row, edit in edits.items() if edit == "put" and row not in is_cleared}
        return Change(puts, [row for row, edit in edits.items() if edit == "delete"], ranges)


def check_against_model(given_flaky: Callable[[], FlakyConsensus], examples: int, steps: int) -> None:
    """Run the machine; ``given_flaky`` may give the same one again, every run has an object of its own."""
    run_state_machine_as_test(
        lambda: ConsensusMachine(given_flaky()),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
