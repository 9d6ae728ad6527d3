"""Errors of a follow that need a person: written down, so that the next runs do not meet them at once.

One run of a follow begins when the last one has ended, so that such an error would make thousands of failed
runs a day. What closes the log's gate is left to the gate, which the next run waits for anyway. A run that
left some of its writers out has lasted its time: the next one does not keep the others waiting.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidemark.app.follow.errors import WritersLeftOut
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.clock import Clock, wall_clock
from tidemark.errors import TidemarkError
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import record_follow_failure
from tidemark.pipeline.model import Pipeline


@contextmanager
def noting_failures(opened: OpenPipeline, clock: Clock = wall_clock) -> Iterator[None]:
    """Write down an error of the block that needs a person; it is raised in any case."""
    try:
        yield
    except TidemarkError as error:
        if error.needs_person and not isinstance(error, WritersLeftOut):
            with suppress(Exception):  # the error itself is what has to be seen
                _note(opened, str(error), clock())
        raise


def _note(opened: OpenPipeline, error: str, now: int) -> None:
    pipeline = opened.pipeline
    if LogControl(opened.consensus, pipeline.name).log_gate() is None:
        record_follow_failure(opened.consensus, pipeline.name, error, declared_digest(pipeline), now)


def declared_digest(pipeline: Pipeline) -> str:
    """A digest of what the pipeline's file says."""
    return hashlib.sha256(pipeline.model_dump_json().encode()).hexdigest()
