"""A files writer's folder against what it has made: every file by name and size, some or all by their bytes.

One listing of the folder and one of the records: that costs the same for every run, but for the names. Which
files are read whole is drawn anew at every position, so that in time all of them are. What an older version
has made has no record: it is looked through once, and judged by the log where the log still has it whole.
"""

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.delivery.published_log import PublishedLog, read_messages
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer import Part
from tidemark.log.errors import FileMissing
from tidemark.pipeline.model import WriterStart
from tidemark.verification.outputs.found import Extent, OutputDifference, OutputProblem, OutputVerification
from tidemark.writers.files.kind import FileFormat
from tidemark.writers.files.ledger import FilesLedger, Made, MadeFile, ids_of
from tidemark.writers.files.writer import FilesWriter, messages_of

NO_RECORD = "made by an older version, and the log is compacted since: only the size is known"
NO_LEDGER = "its files are not recorded"

Recorded = Mapping[str, AbstractSet[MadeFile]]


def judge_names(recorded: Recorded, there: Mapping[str, int]) -> list[OutputDifference]:
    """What one listing tells: files that are missing, or that have another size."""
    found: list[OutputDifference] = []
    for name, versions in recorded.items():
        sizes = sorted({one.bytes for one in versions})
        if name not in there:
            found.append(_difference(OutputProblem.MISSING, name, "the file is missing"))
        elif there[name] not in sizes:
            what = f"it has {there[name]:,} bytes instead of {sizes[-1]:,}"
            found.append(_difference(OutputProblem.SIZE, name, what))
    return found


def draw_files(names: Sequence[str], position: int, after: int | None, count: int) -> list[str]:
    """So many files to read whole: half of them of those delivered just now, others at every position."""
    in_turn = sorted(names, key=lambda name: sha256(f"{position}/{name}".encode()).digest())
    new = [name for name in in_turn if after is not None and ids_of(name)[1] > after]
    old = [name for name in in_turn if name not in set(new)]
    of_new = new[: max(count - len(old), (count + 1) // 2)]
    return of_new + old[: count - len(of_new)]


def verify_files(
    writer: FilesWriter, log: PublishedLog, positions: Positions, state: WriterState, extent: Extent
) -> OutputVerification:
    """The files of every binding at or below the position; refuses settings that would make others."""
    refuse_other_shape(state, writer.shape)
    began, ledger, there = time.monotonic(), writer.ledger, writer.folder.sizes()
    verified = _Verified(writer, log, state, positions)
    if ledger is None:
        return verified.result(began, {}, not_provable={NO_LEDGER: len(there)})
    first, missing = _first_id(writer, state, there), list[OutputDifference]()
    made = ledger.read()
    if not made.is_adopted:
        missing = verified.adopt(ledger, made, there, first)
        made = ledger.read()
    recorded = made.between(first, state.position)
    different = [*missing, *judge_names(recorded, there)]
    bad = {one.where for one in different}
    sound = [name for name in recorded if name not in bad]
    drawn = sound if extent.everything else draw_files(sound, state.position, extent.after, extent.sample)
    chosen = [name for name in sound if name in extent.names and name not in drawn] + drawn
    unproven = 0
    for name in chosen:
        verdict = verified.holds(name, recorded[name])
        if verdict is None:
            unproven += 1
        elif verdict:
            different.append(_difference(OutputProblem.CONTENT, name, verdict))
    looked_at = {"files": len(recorded) + len(missing), "read whole": len(chosen)}
    if made.lost:
        looked_at["let go by a person"] = len(made.lost)
    return verified.result(began, looked_at, different, {NO_RECORD: unproven} if unproven else {})


class _Verified:
    """One verification of one writer's files."""

    def __init__(
        self, writer: FilesWriter, log: PublishedLog, state: WriterState, positions: Positions
    ) -> None:
        self._writer, self._log, self._state, self._positions = writer, log, state, positions

    def adopt(
        self, ledger: FilesLedger, made: Made, there: Mapping[str, int], first: int
    ) -> list[OutputDifference]:
        """Record what an older version has made and is there; what is not there."""
        missing: list[OutputDifference] = []
        for binding, _ in self._log.waiting(first - 1):
            name = self._writer.final(binding)
            if binding.base < first or binding.end > self._state.position:
                continue
            if name in made.files or name in made.lost:
                continue
            if name in there:
                ledger.note(MadeFile(name, there[name], None))
            else:
                missing.append(_difference(OutputProblem.MISSING, name, "the file is missing"))
        if not missing:
            ledger.note_adopted(self._state.position)
        return missing

    def holds(self, name: str, versions: AbstractSet[MadeFile]) -> str | None:
        """What is wrong with a file's bytes; empty where nothing is, None where that is unknown."""
        digests = {one.digest for one in versions if one.digest}
        try:
            if digests:
                found = self._writer.folder.digest(name)
                known = " or ".join(sorted(digest[:12] for digest in digests))
                return (
                    "" if found in digests else f"its bytes were changed (digest {found[:12]}, not {known})"
                )
            return self._holds_messages(name)
        except FileMissing:
            return "the file is missing"

    def _holds_messages(self, name: str) -> str | None:
        """The same for a file without a digest: the log is asked."""
        first, last = ids_of(name)
        binding, files = next(self._log.waiting(first - 1))
        if first < self._log.manifest.compacted_below or (binding.base, binding.end) != (first, last):
            return None
        acknowledged = self._positions.acknowledged(self._writer.name)
        messages = read_messages(self._log.folder, Part(binding, tuple(files)), acknowledged)
        writer, wrong = self._writer, "it does not hold the messages that the log has"
        if writer.declared.format is FileFormat.JSONL:
            return "" if writer.folder.digest(name) == writer.digest_of(messages) else wrong
        # Other versions of the library write the same messages in other bytes.
        with writer.folder.open(name) as source:
            try:
                found = pq.read_table(source)
            except (pa.ArrowException, OSError) as error:
                return f"it cannot be read ({error})"
        expected = pa.Table.from_batches(messages_of(writer, messages), found.schema)
        return "" if found.combine_chunks().equals(expected.combine_chunks()) else wrong

    def result(
        self,
        began: float,
        looked_at: Mapping[str, int],
        differences: Sequence[OutputDifference] = (),
        not_provable: Mapping[str, int] | None = None,
    ) -> OutputVerification:
        """What was found."""
        state = self._state
        return OutputVerification(
            state.pipeline,
            state.name,
            "files",
            state.position,
            looked_at,
            tuple(sorted(differences, key=lambda one: one.first_id)),
            not_provable or {},
            time.monotonic() - began,
        )


def _first_id(writer: FilesWriter, state: WriterState, there: Mapping[str, int]) -> int:
    """From which id on there is to be a file for every binding."""
    if state.since is not None:
        return state.since
    if writer.declared.start is WriterStart.EARLIEST:
        return 0
    # An older version did not keep where it began: as far back as there are files.
    suffix = f".{writer.declared.format.value}"
    bases = [int(name[:20]) for name in there if name.endswith(suffix) and name[:20].isdigit()]
    return min(bases, default=state.position + 1)


def _difference(problem: OutputProblem, name: str, what: str) -> OutputDifference:
    return OutputDifference(problem, name, what, *ids_of(name))
