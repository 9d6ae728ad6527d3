"""The facts about one entity from which follows which of its actions can be dropped.

They are a few numbers per entity, however many actions it has, and they form a monoid: ``facts_of`` one
action, and ``earlier.then(later)`` for two adjacent parts of a history. So they can be gathered file by file
and merged anywhere. The invariant: replaying the kept actions into empty tables, followed by any later ones,
gives the same visible state as replaying all. Where the facts do not guarantee that, everything is kept.
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
    """A part of an entity's history without a purge: one incarnation, or a part of it.

    Attributes:
        is_steady: All actions are in one partition at ascending offsets, so the fold applies every one.
        is_regular: Every action was decoded, and the events are numbered without gaps and repetitions.
        first_seq: The first sequence number appended; 0 without an append.
        last_seq: The last sequence number appended; 0 without an append.
        last_append: The id of the last append.
        delete_id: The id of the delete with the highest ``delete_to``; of several the last.
        delete_to: The last sequence number that it deletes.
        before_delete: The id of the last append before that delete. It determines clamping, ``seq_nr`` and
            expiry.
    """

    partition: int
    first_offset: int
    last_offset: int
    is_steady: bool
    is_regular: bool
    begins_with_append: bool
    first_seq: int
    last_seq: int
    last_append: int
    delete_id: int
    delete_to: int
    before_delete: int

    def then(self, later: "ActionRun") -> "ActionRun":
        """The run of both parts; ``later`` follows this one in the log."""
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
        """Whether the fold is sure to apply a purge at this place after these actions."""
        return self.is_steady and self.partition == partition and self.last_offset < offset


class Facts(Struct, frozen=True, array_like=True, gc=False):
    """What is known of one entity from a part of the log.

    Attributes:
        lead: The actions before the first purge; all actions where there is no purge.
        trail: The actions after the last purge.
        purge_id: The id of the last purge.
        purge_t: The time of its binding (µs).
        first_purge: Partition and offset of the first purge.
        is_sound: Whether the fold applies every purge, except perhaps the first, which depends on earlier
            messages.
        is_steady: ``ActionRun.is_steady`` for all actions, purges included.
        first_place: Partition and offset of the first action.
        last_place: Partition and offset of the last action.
        first_pinned: The lowest pinned id; ``NEVER`` for none.
        last_pinned: The highest pinned id; ``NONE`` for none.
    """

    first_id: int
    last_id: int
    lead: ActionRun | None
    trail: ActionRun | None
    purge_id: int
    purge_t: int
    first_purge: tuple[int, int] | None
    is_sound: bool
    is_steady: bool
    first_place: tuple[int, int]
    last_place: tuple[int, int]
    first_pinned: int
    last_pinned: int

    def then(self, later: "Facts") -> "Facts":
        """The facts of both parts; ``later`` follows this one in the log."""
        purge_id, purge_t, first_purge = self.purge_id, self.purge_t, self.first_purge
        lead, trail = self.lead, self.trail
        # Overlapping ids come from several partitions, and then the order of the actions is unknown.
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
    """Which actions of one entity are dropped. Pinned messages are always kept.

    Attributes:
        purged_below: Everything below this id is dropped.
        delete_id: Below this id, deletes are dropped, and appends that end at or before ``delete_to``.
        kept_append: The id of one such append that is kept.
        purge_goes: Whether the purge is dropped too, because nothing older is left that it would purge.
    """

    purged_below: int = 0
    delete_id: int = NONE
    delete_to: int = 0
    kept_append: int = NONE
    purge_goes: bool = False

    @property
    def keeps_everything(self) -> bool:
        """Whether nothing is dropped."""
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

    ``action`` is None for a purge, and for a message that cannot be decoded. A message that an operator
    acknowledged counts as one that cannot be decoded: tables without it must stay provable from the log.
    """
    id_, t, partition, offset = message
    place = (partition, offset)
    pinned = (id_, id_) if is_pinned else (NEVER, NONE)
    if is_purge:
        return Facts(id_, id_, None, None, id_, t, place, not is_acknowledged, True, place, place, *pinned)
    run = _run_of(id_, partition, offset, None if is_acknowledged else action)
    return Facts(id_, id_, run, None, NONE, 0, None, True, True, place, place, *pinned)


def merge_facts(parts: Iterable[Facts]) -> Facts:
    """The facts of one entity, from parts in any order."""
    first, *others = sorted(parts, key=lambda one: one.first_id)
    for later in others:
        first = first.then(later)
    return first


def judge(facts: Facts) -> Verdict:
    """The verdict about an entity, from all facts about it."""
    if not facts.is_sound or (facts.first_purge and not _takes(facts.lead, facts.first_purge)):
        # The fold may not apply one of the purges, and then it has purged nothing.
        return KEEP
    if facts.purge_id == NONE:
        return _judge_run(facts.lead, facts, 0)
    is_older_pinned = facts.first_pinned < facts.purge_id
    if is_older_pinned and not facts.is_steady:
        # The pinned message would be followed by a purge of another partition, which the fold refuses.
        return KEEP
    below = facts.purge_id if is_older_pinned else facts.purge_id + 1
    return _judge_run(facts.trail, facts, below, purge_goes=not is_older_pinned)


def _judge_run(
    run: ActionRun | None, facts: Facts, purged_below: int, *, purge_goes: bool = False
) -> Verdict:
    kept = Verdict(purged_below, purge_goes=purge_goes)
    if run is None or run.delete_id == NONE or not (run.is_regular and run.is_steady):
        return kept
    # A pinned message would be folded without the messages before it.
    if not run.begins_with_append or facts.last_pinned > facts.purge_id:
        return kept
    return Verdict(purged_below, run.delete_id, run.delete_to, run.before_delete, purge_goes)


def _run_of(id_: int, partition: int, offset: int, action: Append | Delete | None) -> ActionRun:
    at = (partition, offset, offset, True)
    if isinstance(action, Append):
        regular = payload_matches_header(action.form, action.payload, action.first, action.last)
        return ActionRun(*at, regular, True, action.first, action.last, id_, NONE, 0, NONE)
    if isinstance(action, Delete):
        return ActionRun(*at, True, False, 0, 0, NONE, id_, action.to, NONE)
    return ActionRun(*at, False, False, 0, 0, NONE, NONE, 0, NONE)


def payload_matches_header(form: Form, payload: bytes, first: int, last: int) -> bool:
    """Whether a payload holds exactly the events that its header names; the fold uses the payload."""
    try:
        return are_consecutive(sequence_numbers(form, payload), first, last)
    except Undecodable:
        return False


def are_consecutive(numbers: list[int], first: int, last: int) -> bool:
    """Whether the numbers are ``first`` to ``last``, each once and in order."""
    if first == last:
        return numbers == [first]
    # The length first: a header may name a range too large for memory.
    return len(numbers) == last - first + 1 and numbers == list(range(first, last + 1))


def _join(earlier: ActionRun | None, later: ActionRun | None) -> ActionRun | None:
    if earlier is None or later is None:
        return earlier or later
    return earlier.then(later)


def _takes(run: ActionRun | None, purge: tuple[int, int] | None) -> bool:
    return run is None or purge is None or run.would_take(*purge)


def _follows(earlier: tuple[int, int], later: tuple[int, int]) -> bool:
    return earlier[0] == later[0] and earlier[1] < later[1]
