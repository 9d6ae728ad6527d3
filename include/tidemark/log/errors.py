"""Errors of the commit log. Each names the object concerned and, where there is one, the remedy."""

from tidemark.errors import TidemarkError, with_fields


class LogError(TidemarkError):
    """A problem of a log, a binding or a file. Nothing became visible to readers because of it."""


class BadBinding(LogError):
    """A binding that does not exist, or that contradicts itself or the previous binding."""


@with_fields
class BindingsMissing(LogError):
    """Ids of the log belong to no binding, neither in the control plane nor in a binding list."""

    needs_person = True

    pipeline: str
    first_id: int
    last_id: int

    text = (
        "{pipeline}: the bindings of ids {first_id} to {last_id} are missing: neither the control plane nor "
        "a binding list of the current manifest has them. Nothing was read beyond the gap, delivered or "
        "bound. Restore the control plane and the log's folder from backups of the same time; then look "
        "with: tidemark log verify {pipeline}"
    )


@with_fields
class ManifestDamaged(LogError):
    """The manifest's digest differs from the one in the control row."""

    pipeline: str
    path: str
    expected: str
    found: str

    text = (
        "{pipeline}: manifest {path} is damaged (digest {found:.12} instead of {expected:.12}). Nothing was "
        "read from it. Restore the file from a backup of the log folder."
    )


@with_fields
class ManifestFormatUnknown(LogError):
    """The manifest has a form that this version does not know."""

    needs_person = True

    pipeline: str
    found: int
    known: int

    text = (
        "{pipeline}: the log's manifest has format {found}, and this version of Tidemark reads formats up to "
        "{known}. A later version has written it. Nothing was read from it or changed. Run that version, or "
        "a later one."
    )


@with_fields
class ListDamaged(LogError):
    """The digest of a list of segments differs from the one in the line that names it."""

    pipeline: str
    path: str
    expected: str
    found: str

    text = (
        "{pipeline}: the list of segments {path} is damaged (digest {found:.12} instead of {expected:.12}). "
        "Nothing was read from it. Restore the file from a backup of the log folder."
    )


@with_fields
class FileDamaged(LogError):
    """A log file's digest differs from the recorded one."""

    pipeline: str
    path: str
    expected: str
    found: str

    text = (
        "{pipeline}: log file {path} is damaged (digest {found:.12} instead of {expected:.12}). Nothing was "
        "delivered from it. Restore the file from a backup of the log folder."
    )


@with_fields
class FileMissing(LogError):
    """A file that the manifest names does not exist."""

    pipeline: str
    path: str

    text = (
        "{pipeline}: {path} is missing, but the log names it. Nothing was delivered from it. Restore the "
        "file from a backup of the log folder."
    )


@with_fields
class RecordsMissing(LogError):
    """Kafka did not return the records that a binding owns."""

    pipeline: str
    topic: str
    partition: int
    lower: int
    upper: int
    found: str

    text = (
        "{pipeline}: {topic}/{partition} was bound from offset {lower} up to {upper}, but {found}. Nothing "
        "was published. Look at the topic's retention, then clear the capture task to try again."
    )


@with_fields
class RangeWrong(LogError):
    """A log file's ids or count differ from its manifest entry."""

    pipeline: str
    path: str
    expected: tuple[int, int, int]
    found: tuple[int, int, int]

    text = (
        "{pipeline}: {path} holds ids {found[0]} to {found[1]} in {found[2]} messages, but the manifest says "
        "{expected[0]} to {expected[1]} in {expected[2]}."
    )


@with_fields
class FolderUnusable(LogError):
    """A folder cannot be written."""

    pipeline: str
    path: str
    reason: str

    text = (
        "{pipeline}: nothing can be written into {path} ({reason}). Nothing was published or delivered. Make "
        "the folder writable for this user, or correct the path in the pipeline's file."
    )


@with_fields
class CompactedAway(LogError):
    """Requested messages may have been removed by compaction."""

    pipeline: str
    first_id: int
    compacted_below: int

    text = (
        "{pipeline}: the log is compacted below id {compacted_below}, so messages from id {first_id} on are "
        "not complete. Begin at {compacted_below}, or say that what is left will do."
    )


@with_fields
class BeyondTheEnd(LogError):
    """Requested ids are beyond the log's end."""

    pipeline: str
    first_id: int
    end: int

    text = "{pipeline}: the log ends at id {end}, so there is nothing from id {first_id} on."


@with_fields
class NotPublished(LogError):
    """A requested binding is not published yet."""

    pipeline: str
    t: int
    newest: int

    text = "{pipeline}: no binding at {t} is part of the log yet; the newest one that is has t = {newest}."
