"""Comparisons of two writers as renditions 1 and 2 of one, without an output in the control plane."""

from typing import Any

from tests.support.pipeline_world import PipelineWorld

from tidemark.outputs.model.evidence import VerificationMode
from tidemark.pipeline.expect import Expectation
from tidemark.verification.renditions.comparison import Compared, Comparing
from tidemark.verification.renditions.here import Here
from tidemark.verification.renditions.matching import RuleMatcher
from tidemark.verification.renditions.verify import last_finished
from tidemark.writers.renditions import RenditionWriter


def given_comparing(
    world: PipelineWorld, old: Any, new: Any, *rules: dict[str, Any], since: int = 0
) -> Comparing:
    """What a comparison of these writers is about; up to where both have finished everything."""
    matcher = RuleMatcher(tuple(Expectation.model_validate({"reason": "meant", **one}) for one in rules))
    position = min(world.position(one) for one in (old, new))
    return Comparing(
        "orders",
        "archive",
        RenditionWriter(old.declared, 1, None, old),
        RenditionWriter(new.declared, 2, None, new),
        world.log,
        world.positions,
        last_finished(world.log, position),
        since,
        VerificationMode.EXPLAINED if rules else VerificationMode.EXACT,
        matcher,
        Here(world.shown.append),
    )


def said(found: Compared) -> list[str]:
    """The differences that are shown, sorted."""
    return sorted(one.said for group in found.tally.samples.values() for one in group)
