"""An ``OpenPipeline`` named ``orders``: control plane in memory, log in a folder, writers of the test."""

from typing import Any

import pytest

from tidemark.app import open_pipeline
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.pipeline.model import Pipeline
from tidemark.writers import renditions


def given_opened(house: Any, patch: pytest.MonkeyPatch, *writers: Any, **declared: Any) -> OpenPipeline:
    """The pipeline of a ``delivery_samples.House``, with these writers; ``declared`` adds to its file."""
    given = {
        "name": "orders",
        "source": {"kafka": {"topics": ["orders"]}},
        "writers": [{"name": one.name, "kind": "files", "path": f"/{one.name}"} for one in writers],
        "log": {"path": str(house.root / "log")},
        **declared,
    }
    pipeline = Pipeline.model_validate(given, context={"TIDEMARK_HOME": str(house.root)})
    opened = OpenPipeline(pipeline, None)  # type: ignore[arg-type]
    patch.setattr(open_pipeline.control_plane, "look_at_control", lambda connections: house.consensus)
    given_by_name = {one.name: one for one in writers}
    patch.setattr(
        renditions,
        "build_writer",
        lambda pipeline, connections, declared, number: given_by_name[declared.name],
    )
    return opened
