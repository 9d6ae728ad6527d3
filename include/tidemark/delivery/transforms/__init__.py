"""Transforms between the log and one writer. ``Document`` and ``Operation`` are what functions of users
see."""

from tidemark.delivery.transforms.document import Document, Operation

__all__ = ["Document", "Operation"]
