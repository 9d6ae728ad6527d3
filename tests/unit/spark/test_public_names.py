"""``tidemark.spark``: the public functions of the data source, and their paths of the release before."""

import subprocess
import sys

import pytest

import tidemark.spark
from tidemark.spark.source.cassandra import register_cassandra
from tidemark.spark.source.join_by_key import join_by_key
from tidemark.spark.source.query_table import query_table

pytestmark = pytest.mark.unit

FUNCTIONS = {"register_cassandra": register_cassandra, "query_table": query_table, "join_by_key": join_by_key}


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has imported nothing of ours yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_package_has_the_public_functions(name):
    assert getattr(tidemark.spark, name) is FUNCTIONS[name]
    assert name in tidemark.spark.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="register_kafka"):
        _ = tidemark.spark.register_kafka


def test_importing_the_package_does_not_import_pyspark():
    ended = run_python("import sys, tidemark.spark; sys.exit('pyspark' in sys.modules)")
    assert ended.returncode == 0, ended


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("cassandra_source", "register_cassandra"),
        ("pruned_read", "query_table"),
        ("join_by_key", "join_by_key"),
    ],
)
def test_a_path_of_the_release_before_leads_to_the_function_with_a_warning(path, name):
    ended = run_python(
        f"import warnings; warnings.simplefilter('default'); from tidemark.spark.{path} import {name}; "
        f"print({name}.__module__, {name}.__name__)"
    )
    module, found = ended.stdout.split()
    assert (module.startswith("tidemark.spark.source."), found) == (True, name), ended
    assert f"DeprecationWarning: tidemark.spark.{path} has moved: import from tidemark.spark" in ended.stderr


def test_join_by_key_of_the_package_can_be_called_after_its_old_module_was_imported():
    """The import binds the module to the package's attribute of the same name."""
    ended = run_python(
        "import tidemark.spark.join_by_key; from tidemark.spark import join_by_key; join_by_key()"
    )
    assert "join_by_key() missing 1 required positional argument: 'rows'" in ended.stderr
