"""Verification of a files writer's folder: every file by name and size, a sample or all by their bytes.

The folder and the records of written files are listed once each, so the cost grows only with the number of
names. Every position draws another sample of files to read, so that in time all are read. Files that an older
version wrote have no record: one is added for each, and their content is compared with the log where the log
still has all their messages.
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


def judge_names(recorded: Recorded, listed: Mapping[str, int]) -> list[OutputDifference]:
    """The recorded files that are missing, or have another size, in a listing of names and sizes."""
    found: list[OutputDifference] = []
    for name, versions in recorded.items():
        sizes = sorted({one.bytes for one in versions})
        if name not in listed:
            found.append(_difference(OutputProblem.MISSING, name, "the file is missing"))
        elif listed[name] not in sizes:
            what = f"it has {listed[name]:,} bytes instead of {sizes[-1]:,}"
            found.append(_difference(OutputProblem.SIZE, name, what))
    return found


def draw_files(names: Sequence[str], position: int, after: int | None, count: int) -> list[str]:
    """A sample of ``count`` files, half of them delivered after the id ``after``; the position seeds it."""
    shuffled = sorted(names, key=lambda name: sha256(f"{position}/{name}".encode()).digest())
    new = [name for name in shuffled if after is not None and ids_of(name)[1] > after]
    old = [name for name in shuffled if name not in set(new)]
    of_new = new[: max(count - len(old), (count + 1) // 2)]
    return of_new + old[: count - len(of_new)]


def verify_files(
    writer: FilesWriter, log: PublishedLog, positions: Positions, state: WriterState, extent: Extent
) -> OutputVerification:
    """Verify the files of every binding at or below the position.

    Refuses settings that would produce other files.
    """
    refuse_other_shape(state, writer.shape)
    began, ledger, listed = time.monotonic(), writer.ledger, writer.folder.sizes()
    verification = _FilesVerification(writer, log, state, positions)
    if ledger is None:
        return verification.result(began, {}, not_provable={NO_LEDGER: len(listed)})
    first, missing = _first_id(writer, state, listed), list[OutputDifference]()
    made = ledger.read()
    if not made.is_adopted:
        missing = verification.adopt(ledger, made, listed, first)
        made = ledger.read()
    recorded = made.between(first, state.position)
    different = [*missing, *judge_names(recorded, listed)]
    bad = {one.where for one in different}
    intact = [name for name in recorded if name not in bad]
    drawn = intact if extent.everything else draw_files(intact, state.position, extent.after, extent.sample)
    chosen = [name for name in intact if name in extent.names and name not in drawn] + drawn
    unproven = 0
    for name in chosen:
        problem = verification.content_problem(name, recorded[name])
        if problem is None:
            unproven += 1
        elif problem:
            different.append(_difference(OutputProblem.CONTENT, name, problem))
    looked_at = {"files": len(recorded) + len(missing), "read whole": len(chosen)}
    if made.lost:
        looked_at["let go by a person"] = len(made.lost)
    return verification.result(began, looked_at, different, {NO_RECORD: unproven} if unproven else {})


class _FilesVerification:
    """One verification of one writer's files."""

    def __init__(
        self, writer: FilesWriter, log: PublishedLog, state: WriterState, positions: Positions
    ) -> None:
        self._writer, self._log, self._state, self._positions = writer, log, state, positions

    def adopt(
        self, ledger: FilesLedger, made: Made, listed: Mapping[str, int], first: int
    ) -> list[OutputDifference]:
        """Record the files that an older version wrote; returns those that are missing."""
        missing: list[OutputDifference] = []
        for binding, _ in self._log.waiting(first - 1):
            name = self._writer.final(binding)
            if binding.base < first or binding.end > self._state.position:
                continue
            if name in made.files or name in made.lost:
                continue
            if name in listed:
                ledger.note(MadeFile(name, listed[name], None))
            else:
                missing.append(_difference(OutputProblem.MISSING, name, "the file is missing"))
        if not missing:
            ledger.note_adopted(self._state.position)
        return missing

    def content_problem(self, name: str, versions: AbstractSet[MadeFile]) -> str | None:
        """What is wrong with a file's bytes; empty where nothing is, None where that is unknown."""
        digests = {one.digest for one in versions if one.digest}
        try:
            if digests:
                found = self._writer.folder.digest(name)
                known = " or ".join(sorted(digest[:12] for digest in digests))
                return (
                    "" if found in digests else f"its bytes were changed (digest {found[:12]}, not {known})"
                )
            return self._message_problem(name)
        except FileMissing:
            return "the file is missing"

    def _message_problem(self, name: str) -> str | None:
        """``content_problem`` of a file without a recorded digest: compares its messages with the log's."""
        first, last = ids_of(name)
        binding, files = next(self._log.waiting(first - 1))
        if first < self._log.manifest.compacted_below or (binding.base, binding.end) != (first, last):
            return None
        acknowledged = self._positions.acknowledged(self._writer.name)
        messages = read_messages(self._log.folder, Part(binding, tuple(files)), acknowledged)
        writer, wrong = self._writer, "it does not hold the messages that the log has"
        if writer.declared.format is FileFormat.JSONL:
            return "" if writer.folder.digest(name) == writer.digest_of(messages) else wrong
        # Other versions of the Parquet library write the same messages in other bytes.
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
        """The result, with differences in id order."""
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


def _first_id(writer: FilesWriter, state: WriterState, listed: Mapping[str, int]) -> int:
    """The id from which on every binding must have a file."""
    if state.since is not None:
        return state.since
    if writer.declared.start is WriterStart.EARLIEST:
        return 0
    # An older version did not record where it began, so the oldest file decides.
    suffix = f".{writer.declared.format.value}"
    bases = [int(name[:20]) for name in listed if name.endswith(suffix) and name[:20].isdigit()]
    return min(bases, default=state.position + 1)


def _difference(problem: OutputProblem, name: str, what: str) -> OutputDifference:
    return OutputDifference(problem, name, what, *ids_of(name))
