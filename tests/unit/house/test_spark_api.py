"""Everything that uses Spark runs on a Connect server too: no RDDs, no ``SparkContext``, no JVM."""

import re

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

FOLDERS = ("include", "spark_apps", "bench", "dags", "plugins", "tests")
CLASSIC = re.compile(
    r"\bsparkContext\b|\bSparkContext\b|\.rdd\b|\b_jvm\b|\b_jsparkSession\b|\b_jdf\b|\b_jsc\b|\bparallelize\("
)
ALLOWED = {
    "include/tidemark/spark/source/own_scans.py": "installs an optimizer rule in this process",
    "tests/spark/test_cassandra_source.py": "looks for that rule",
    "tests/system/test_cassandra_source.py": "reads the metrics of a plan and an application's pages",
    "tests/unit/house/test_spark_api.py": "names what is forbidden",
}
"""Files that reach into a classic session, and why."""


def users() -> set[str]:
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    return {str(file.relative_to(ROOT)) for file in files if CLASSIC.search(code_of(file.read_text()))}


def code_of(text: str) -> str:
    """A module without its prose: docstrings may speak of what code may not use."""
    return re.sub(r'""".*?"""', "", text, flags=re.DOTALL)


def test_no_code_uses_what_only_a_classic_session_has():
    assert users() - ALLOWED.keys() == set()


def test_every_exception_is_needed():
    assert ALLOWED.keys() - users() == set()
