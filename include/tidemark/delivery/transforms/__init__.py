"""Transforms between the log and one writer. ``Document`` and ``Operation`` are the API of users'
functions."""

from tidemark.delivery.transforms.document import Document, Operation

__all__ = ["Document", "Operation"]
