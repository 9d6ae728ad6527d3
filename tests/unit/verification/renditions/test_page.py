"""The example of docs/verification.md, as it stands there."""

import re
from typing import Any

import pytest
import yaml
from tests.support.compared_world import RenditionWorld

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

PAGE = (ROOT / "docs" / "verification.md").read_text()
SECTION = PAGE.split("## Comparing renditions\n")[1].split("\n## ")[0]
NEW = [
    {"skip": {"field": "owner", "operator": "=~", "match": "^(ann|bob)$"}},
    {"omit": {"fields": ["balance"]}},
]


def block(kind: str) -> str:
    found = re.search(rf"\n\n```{kind}\n(.*?)```\n", SECTION, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_the_page_is_what_a_verification_reports(tmp_path, monkeypatch):
    rules: list[dict[str, Any]] = yaml.safe_load(block("yaml"))["expect"]
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("a=120 b=50/bob c=7/carol")
    world.publish_records("a=130")
    world.deliver(world.started())
    world.build(transforms=NEW)
    report = world.expecting(*rules)
    assert report.is_clean
    assert "\n".join(report.to_lines()) + "\n" == block("")
