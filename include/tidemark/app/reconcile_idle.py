"""reconcile of a run that delivers nothing: the cheapest comparison of every target with the log.

Nothing is repaired here: a difference closes the writer's gate, and a resume repairs it.
"""

from collections.abc import Callable

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.failures import FAILURES
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions, ShapeChanged
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError
from tidemark.verification.outputs.found import Extent
from tidemark.verification.outputs.reconcile import is_output, reconcile_output, verify_output
from tidemark.verification.reconcile import reconcile_pointers
from tidemark.verification.reconciliation import Reconciliation
from tidemark.writers.files.writer import FilesWriter
from tidemark.writers.journal.writer import JournalWriter


def reconcile_idle(opened: OpenPipeline, holder: str, show: Callable[[str], object]) -> list[str]:
    """Compare every target with the log in the cheapest way; returns the differences as sentences.

    The delivery that reached this position compared a sample of contents, so only names, sizes, last ids and
    pointers are compared here. A target that does not answer is reported through ``show``; the next delivery
    fails at it. The active renditions are compared, with their own settings.
    """
    positions, different, stopped = opened.positions, list[str](), opened.stopped()
    names = [one.name for one in opened.pipeline.writers if one.name not in stopped]
    wanted = [one for one in map(opened.writer, names) if one.compared_after_delivery]
    writers = [one for one in wanted if _expects(positions, one)]
    if not writers:
        return []
    with opened.log.held(holder) as log:
        for writer in writers:
            try:
                if record := _compare(writer, log, positions, holder, show):
                    different.append(f"{opened.pipeline.name}/{writer.name}: {record.reason}")
            except LogUnreadable:
                raise
            except LeaseHeld as held:
                show(f"not reconciled: {held}")
            except ShapeChanged as changed:  # of a kind that keeps no settings
                different.append(str(changed))
            except (TidemarkError, *FAILURES) as error:
                show(f"{opened.pipeline.name}/{writer.name}: not compared: {error}")
    return different


def _compare(
    writer: Writer, log: PublishedLog, positions: Positions, holder: str, show: Callable[[str], object]
) -> Reconciliation | None:
    """The recorded difference between a target and the log; None where there is none."""
    if isinstance(writer, JournalWriter):
        return reconcile_pointers(writer, log, positions, holder)
    if not is_output(writer):
        return None
    found = verify_output(writer, log, positions, Extent(0 if isinstance(writer, FilesWriter) else 1))
    if found is None:
        return None
    show(f"{found.pipeline}/{found.writer}: {found.summary}")
    return None if found.is_clean else reconcile_output(found, positions, log.folder.root, holder)


def _expects(positions: Positions, writer: Writer) -> bool:
    state = positions.load(writer.name)
    return state is not None and state.expects_anything
