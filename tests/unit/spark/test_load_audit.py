"""Great Expectations is loaded while Spark starts, and never while PySpark is being imported."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from tidemark.spark import application

seen = []
application.prepare_audit = lambda: seen.append("pyspark.sql.functions" in sys.modules)
assert "pyspark" not in sys.modules
with ThreadPoolExecutor(1) as threads:
    application.load_audit_beside(threads)
print(seen)
"""


def test_pyspark_is_imported_before_the_other_thread_begins():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[True]"
