"""Keeps the reports of renditions in the log's folder, beside those of audits and reconciliations.

Every comparison has a report of its own, named by when it ended. Judges nothing, and changes no state.
"""

import json

from tidemark.log.files.folder import Folder
from tidemark.verification.renditions.report import RenditionReport

AREA, SUFFIX = "renditions", ".json"


def keep(root: str, report: RenditionReport) -> str:
    """Write a report into the log's folder; returns its path."""
    path = f"{_area(report.writer, report.number)}/{report.at:020d}{SUFFIX}"
    body = json.dumps(report.to_dict(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    Folder(report.pipeline, root).replace(path, body.encode())
    return path


def read_last(pipeline: str, root: str, writer: str, number: int) -> RenditionReport | None:
    """The report of the newest comparison of a rendition; None where it was never compared."""
    folder = Folder(pipeline, root)
    newest = max(folder.list_files(_area(writer, number), SUFFIX), default=None)
    return RenditionReport.from_dict(json.loads(folder.read(newest))) if newest else None


def _area(writer: str, number: int) -> str:
    return f"{AREA}/{writer}/r{number}"
