"""The filter: decides which messages of a file are dropped, by verdicts, ids and the first pass's notes.

It also counts what the proof needs: drops by reason, and the deletes, purges and last messages that drops
depend on. It does not decode messages.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from tidemark.compaction.policies.journal_batches import NOTHING, entity_names
from tidemark.compaction.policies.journal_facts import NONE
from tidemark.compaction.policies.policy import LastOfKey
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.policies.valid_operations import STAYS
from tidemark.compaction.policies.verdicts import Verdicts
from tidemark.compaction.staging import Workplace
from tidemark.log.model.manifest import LogFile

ROWS_AT_ONCE = 262_144
"""How many messages are filtered at a time; the index of the verdicts' keys is built for each batch."""
_Ids = NDArray[np.int64]
_Mask = NDArray[np.bool_]


class Dropped(Struct, frozen=True, array_like=True):
    """Counts of one file's messages.

    Attributes:
        count: All messages.
        eligible: Messages below the watermark.
        last_dropped: The highest id that is dropped; −1 where nothing is.
        pinned_dropped: Pinned messages that are dropped; more than 0 is a defect, which the proof refuses.
        nothing: Dropped marks, and messages that are no actions.
        purged: Dropped because of a later purge; and purges that are dropped with everything before them.
        deleted: Dropped because of a later delete, which is kept.
        superseded: Dropped because of a later message with the same key; expired tombstones; and corrections
            that are void because of an earlier message.
        kept_deletes: Deletes that are kept because drops depend on them.
        kept_purges: Purges that drops depend on, and that are kept.
        gone_purges: Purges that drops depend on, and that are dropped too.
        kept_below_gone_purge: Messages that are kept although a later purge of their entity is dropped; more
            than 0 is a defect, which the proof refuses.
        kept_chosen: Last messages of a key that are kept.
    """

    path: str
    count: int
    eligible: int
    dropped: int
    last_dropped: int = NONE
    pinned_dropped: int = 0
    nothing: int = 0
    purged: int = 0
    deleted: int = 0
    superseded: int = 0
    kept_deletes: int = 0
    kept_purges: int = 0
    gone_purges: int = 0
    kept_below_gone_purge: int = 0
    kept_chosen: int = 0


def drop_journal(place: Workplace, rules: CompactionRules, file: LogFile, verdicts: Verdicts) -> Dropped:
    """Note which messages of a journal's file are dropped."""
    reach = place.reach(file)
    tally, gone, at = _Tally(file, rules), [], 0
    for batch in _gathered(place.eligible(file, rules.watermark, ["id", "key"])):
        ids = batch["id"].to_numpy()
        reaches = reach[at : at + len(ids)]
        at += len(ids)
        names = entity_names(batch["key"], ids, rules.beginnings(file.topic))
        gone.append(tally.judge(ids, reaches, _numbers_of(names, verdicts.keys), verdicts))
    return tally.conclude(place, gone)


def drop_keyed(
    place: Workplace, rules: CompactionRules, policy: LastOfKey, file: LogFile, chosen: Sequence[int]
) -> Dropped:
    """Note which messages of a file are dropped: those with a key, except the chosen ids."""
    stays = np.sort(np.array(chosen, np.int64))
    tally, gone = _Tally(file, rules), []
    columns = [] if policy.key_of is None else ["t", "namespace", *policy.columns]
    for batch in place.eligible(file, rules.watermark, sorted({"id", *columns})):
        ids = batch["id"].to_numpy()
        is_chosen = np.isin(ids, stays, assume_unique=True)
        keys = policy.keys(pa.Table.from_batches([batch]))
        without_key = False if keys is None else _nulls(keys)
        gone.append(tally.judge_chosen(ids, is_chosen, is_chosen | without_key))
    return tally.conclude(place, gone)


def drop_operations(
    place: Workplace, rules: CompactionRules, file: LogFile, chosen: Sequence[int]
) -> Dropped:
    """Note which messages of a file are dropped: all that may go, except the chosen ids."""
    chosen_ids, always = np.sort(np.array(chosen, np.int64)), place.reach(file) == STAYS
    tally, gone, at = _Tally(file, rules), [], 0
    for batch in place.eligible(file, rules.watermark, ["id"]):
        ids = batch["id"].to_numpy()
        is_chosen = np.isin(ids, chosen_ids, assume_unique=True)
        gone.append(tally.judge_chosen(ids, is_chosen, is_chosen | always[at : at + len(ids)]))
        at += len(ids)
    return tally.conclude(place, gone)


def _nulls(keys: pa.Array | pa.ChunkedArray) -> _Mask:
    is_null = pc.is_null(keys)
    whole = is_null.combine_chunks() if isinstance(is_null, pa.ChunkedArray) else is_null
    mask: _Mask = whole.to_numpy(zero_copy_only=False)
    return mask


class _Tally:
    """Filters the batches of one file, and counts."""

    def __init__(self, file: LogFile, rules: CompactionRules) -> None:
        self._file, self._pins = file, np.array(rules.kept_ids, np.int64)
        self._eligible = self._nothing = self._purged = self._deleted = self._superseded = 0
        self._kept_deletes = self._kept_purges = self._gone_purges = self._kept_below = self._kept_chosen = 0

    def judge(self, ids: _Ids, reach: _Ids, entity: _Ids, verdicts: Verdicts) -> _Ids:
        """The ids to drop of a journal's batch.

        ``entity`` is the index of each message's verdict, −1 for none; ``reach`` is explained in
        ``journal_batches``.
        """
        is_judged = entity >= 0
        if len(verdicts.keys):
            below, delete_id = verdicts.purged_below[entity], verdicts.delete_id[entity]
            to, kept = verdicts.delete_to[entity], verdicts.kept_append[entity]
            purge_goes = verdicts.purge_goes[entity]
        else:
            below = delete_id = to = kept = np.zeros(len(ids), np.int64)
            purge_goes = np.zeros(len(ids), np.bool_)
        is_free = ~np.isin(ids, self._pins)
        is_nothing = reach == NOTHING
        is_purged = ~is_nothing & is_judged & (ids < below)
        is_kept_purge = (below > 0) & ~purge_goes & (ids == below)
        stays = is_purged | is_kept_purge | (ids == kept) | (reach > to)
        is_deleted = ~is_nothing & is_judged & (ids < delete_id) & ~stays
        gone = (is_nothing | is_purged | is_deleted) & is_free
        self._eligible += len(ids)
        self._nothing += int((gone & is_nothing).sum())
        self._purged += int((gone & is_purged).sum())
        self._deleted += int((gone & is_deleted).sum())
        decides = is_judged & ~is_nothing
        self._kept_deletes += int((decides & (ids == delete_id) & ~gone).sum())
        self._kept_purges += int((decides & is_kept_purge & ~gone).sum())
        self._gone_purges += int((decides & purge_goes & (ids == below - 1)).sum())
        is_last_purge = ids == below - 1
        self._kept_below += int((decides & purge_goes & (ids < below) & ~is_last_purge & ~gone).sum())
        dropped: _Ids = ids[gone]
        return dropped

    def judge_chosen(self, ids: _Ids, is_chosen: _Mask, stays: _Mask) -> _Ids:
        """The ids to drop of a batch: all but those that stay, and pinned ones."""
        gone = ~stays & ~np.isin(ids, self._pins)
        self._eligible += len(ids)
        self._superseded += int(gone.sum())
        self._kept_chosen += int((is_chosen & ~gone).sum())
        dropped: _Ids = ids[gone]
        return dropped

    def conclude(self, place: Workplace, gone: Sequence[_Ids]) -> Dropped:
        """Note the ids to drop; returns the counts."""
        ids = np.concatenate(gone) if gone else np.empty(0, np.int64)
        place.note_dropped(self._file, ids)
        return Dropped(
            self._file.path,
            self._file.count,
            self._eligible,
            len(ids),
            int(ids[-1]) if len(ids) else NONE,
            int(np.isin(self._pins, ids).sum()),
            self._nothing,
            self._purged,
            self._deleted,
            self._superseded,
            self._kept_deletes,
            self._kept_purges,
            self._gone_purges,
            self._kept_below,
            self._kept_chosen,
        )


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same messages in batches of ``ROWS_AT_ONCE`` or more."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= ROWS_AT_ONCE:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def _numbers_of(names: pa.Array, judged: pa.Array) -> _Ids:
    """The index of every entity among the judged ones; −1 for those that are not judged."""
    found = pc.index_in(names, value_set=judged)
    numbers: _Ids = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return numbers
