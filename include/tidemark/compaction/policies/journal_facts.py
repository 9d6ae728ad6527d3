"""The facts about one entity that decide which of its actions a journal can do without.

A handful of numbers per entity, however many actions it has. They are a monoid: ``facts_of`` one action, and
``earlier.then(later)`` for two stretches of a history that follow each other in the log, so that they can be
gathered file by file and put together anywhere. The promise: replaying what is left into empty tables, and
whatever comes later, gives what replaying everything gives. Where that cannot be promised from the facts, the
verdict is to keep.
"""

from collections.abc import Iterable

from msgspec import Struct

from tidemark.journal.action import Append, Delete
from tidemark.journal.codec.payload import Form, sequence_numbers
from tidemark.journal.errors import Undecodable

NONE = -1
"""No such id."""
NEVER = 2**63 - 1


class ActionRun(Struct, frozen=True, array_like=True, gc=False):
    """A stretch of an entity's actions without a purge: one incarnation, or a part of it."""

    partition: int
    first_offset: int
    last_offset: int
    is_steady: bool
    """All in one partition, at ascending offsets: the fold takes every one of them."""
    is_regular: bool
    """Every action was understood, and the events are numbered without a gap and without a repetition."""
    begins_with_append: bool
    first_seq: int
    last_seq: int
    """Of the events appended; 0 without any."""
    last_append: int
    """The id of the last append."""
    delete_id: int
    delete_to: int
    """The delete that reaches furthest; of several the last."""
    before_delete: int
    """The id of the last append before that delete: clamping, ``seq_nr`` and expiry come from it."""

    def then(self, later: "ActionRun") -> "ActionRun":
        """Both, one after the other."""
        joined = not self.last_seq or not later.first_seq or self.last_seq + 1 == later.first_seq
        reaches_further = later.delete_id != NONE and later.delete_to >= self.delete_to
        if reaches_further:
            before = later.before_delete if later.before_delete != NONE else self.last_append
            delete_id, delete_to = later.delete_id, later.delete_to
        else:
            delete_id, delete_to, before = self.delete_id, self.delete_to, self.before_delete
        return ActionRun(
            self.partition,
            self.first_offset,
            later.last_offset,
            self.is_steady
            and later.is_steady
            and self.partition == later.partition
            and self.last_offset < later.first_offset,
            self.is_regular and later.is_regular and joined,
            self.begins_with_append,
            self.first_seq or later.first_seq,
            later.last_seq or self.last_seq,
            later.last_append if later.last_append != NONE else self.last_append,
            delete_id,
            delete_to,
            before,
        )

    def would_take(self, partition: int, offset: int) -> bool:
        """Whether the fold, after these actions, surely takes a purge from there."""
        return self.is_steady and self.partition == partition and self.last_offset < offset


class Facts(Struct, frozen=True, array_like=True, gc=False):
    """What is known of one entity from a stretch of the log."""

    first_id: int
    last_id: int
    lead: ActionRun | None
    """What comes before the first purge; everything where there is none."""
    trail: ActionRun | None
    """What comes after the youngest purge."""
    purge_id: int
    """The youngest purge."""
    purge_t: int
    """The t of the binding that holds it."""
    first_purge: tuple[int, int] | None
    """Partition and offset of the first purge."""
    is_sound: bool
    """Whether the fold takes every purge but perhaps the first, which depends on what comes earlier."""
    is_steady: bool
    """As of a run, for the whole stretch with its purges."""
    first_place: tuple[int, int]
    last_place: tuple[int, int]
    """Partition and offset of its ends."""
    first_pinned: int
    last_pinned: int

    def then(self, later: "Facts") -> "Facts":
        """Both, one after the other."""
        purge_id, purge_t, first_purge = self.purge_id, self.purge_t, self.first_purge
        lead, trail = self.lead, self.trail
        # Where two partitions' messages of one entity are mixed up, nobody says any more what follows what.
        is_sound = self.is_sound and later.is_sound and self.last_id < later.first_id
        if later.purge_id == NONE:
            if purge_id == NONE:
                lead = _join(lead, later.lead)
            else:
                trail = _join(trail, later.lead)
        else:
            if purge_id == NONE:
                lead, first_purge = _join(lead, later.lead), later.first_purge
            else:
                between = _join(trail, later.lead)
                is_sound = is_sound and _takes(between, later.first_purge)
            trail, purge_id, purge_t = later.trail, later.purge_id, later.purge_t
        return Facts(
            min(self.first_id, later.first_id),
            max(self.last_id, later.last_id),
            lead,
            trail,
            purge_id,
            purge_t,
            first_purge,
            is_sound,
            self.is_steady and later.is_steady and _follows(self.last_place, later.first_place),
            self.first_place,
            later.last_place,
            min(self.first_pinned, later.first_pinned),
            max(self.last_pinned, later.last_pinned),
        )


class Verdict(Struct, frozen=True, array_like=True, gc=False):
    """Which actions of one entity go, in a few numbers; a pinned message stays in spite of them."""

    purged_below: int = 0
    """Everything below this id goes."""
    delete_id: int = NONE
    """Below this id go deletes, and appends that do not reach beyond ``delete_to`` …"""
    delete_to: int = 0
    kept_append: int = NONE
    """… except this one."""
    purge_goes: bool = False
    """Whether the purge that decided is itself among what goes: nothing older is left that it would purge."""

    @property
    def keeps_everything(self) -> bool:
        """Whether nothing goes."""
        return self.purged_below == 0 and self.delete_id == NONE


KEEP = Verdict()


def facts_of(
    message: tuple[int, int, int, int],
    action: Append | Delete | None,
    *,
    is_purge: bool = False,
    is_acknowledged: bool = False,
    is_pinned: bool = False,
) -> Facts:
    """The facts of one message: its id, t, partition and offset, and its action.

    ``action`` is None for a purge, and for what cannot be understood. What a person has let pass unwritten
    counts as not understood: the tables it is missing from must stay provable from the log.
    """
    id_, t, partition, offset = message
    place = (partition, offset)
    pinned = (id_, id_) if is_pinned else (NEVER, NONE)
    if is_purge:
        return Facts(id_, id_, None, None, id_, t, place, not is_acknowledged, True, place, place, *pinned)
    run = _run_of(id_, partition, offset, None if is_acknowledged else action)
    return Facts(id_, id_, run, None, NONE, 0, None, True, True, place, place, *pinned)


def merge_facts(parts: Iterable[Facts]) -> Facts:
    """All that is known of one entity, gathered anywhere and in any order."""
    first, *others = sorted(parts, key=lambda one: one.first_id)
    for later in others:
        first = first.then(later)
    return first


def judge(facts: Facts) -> Verdict:
    """What of an entity may go."""
    if not facts.is_sound or (facts.first_purge and not _takes(facts.lead, facts.first_purge)):
        # The fold does not take one of the purges, or nobody knows: then it has purged nothing.
        return KEEP
    if facts.purge_id == NONE:
        return _judge_run(facts.lead, facts, 0)
    is_older_pinned = facts.first_pinned < facts.purge_id
    if is_older_pinned and not facts.is_steady:
        # What is pinned would meet a purge of another partition, which the fold refuses.
        return KEEP
    below = facts.purge_id if is_older_pinned else facts.purge_id + 1
    return _judge_run(facts.trail, facts, below, purge_goes=not is_older_pinned)


def _judge_run(
    run: ActionRun | None, facts: Facts, purged_below: int, *, purge_goes: bool = False
) -> Verdict:
    kept = Verdict(purged_below, purge_goes=purge_goes)
    if run is None or run.delete_id == NONE or not (run.is_regular and run.is_steady):
        return kept
    # Something pinned among what goes would be folded without what came before it.
    if not run.begins_with_append or facts.last_pinned > facts.purge_id:
        return kept
    return Verdict(purged_below, run.delete_id, run.delete_to, run.before_delete, purge_goes)


def _run_of(id_: int, partition: int, offset: int, action: Append | Delete | None) -> ActionRun:
    at = (partition, offset, offset, True)
    if isinstance(action, Append):
        regular = holds_what_is_said(action.form, action.payload, action.first, action.last)
        return ActionRun(*at, regular, True, action.first, action.last, id_, NONE, 0, NONE)
    if isinstance(action, Delete):
        return ActionRun(*at, True, False, 0, 0, NONE, id_, action.to, NONE)
    return ActionRun(*at, False, False, 0, 0, NONE, NONE, 0, NONE)


def holds_what_is_said(form: Form, payload: bytes, first: int, last: int) -> bool:
    """Whether a payload holds exactly the events that its header promises: the fold goes by the payload."""
    try:
        return are_consecutive(sequence_numbers(form, payload), first, last)
    except Undecodable:
        return False


def are_consecutive(numbers: list[int], first: int, last: int) -> bool:
    """Whether the numbers are those from one to another, each once and in order."""
    if first == last:
        return numbers == [first]
    # A header may name more events than there is memory.
    return len(numbers) == last - first + 1 and numbers == list(range(first, last + 1))


def _join(earlier: ActionRun | None, later: ActionRun | None) -> ActionRun | None:
    if earlier is None or later is None:
        return earlier or later
    return earlier.then(later)


def _takes(run: ActionRun | None, purge: tuple[int, int] | None) -> bool:
    return run is None or purge is None or run.would_take(*purge)


def _follows(earlier: tuple[int, int], later: tuple[int, int]) -> bool:
    return earlier[0] == later[0] and earlier[1] < later[1]
