"""What the format ``collection`` refuses before it reads anything: no Cassandra takes part."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tidemark.client.collection.errors import NotACollection
from tidemark.pipeline.loader import UnknownPipeline
from tidemark.spark import register_collections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = "kind: collection, envelope: upsert, key: {id: text}, columns: {owner: text}"
BANK = f"""
name: bank
source: {{kafka: {{topics: [accounts], format: json}}}}
writers:
  - {{name: accounts, {COLUMNS}}}
  - {{name: savings, {COLUMNS}}}
"""
ORDERS = """
name: sales
source: {kafka: {topics: [sales]}}
writers:
  - {name: tables, kind: journal}
"""


def look_up(name: str) -> dict[str, Any]:
    return {"conn_type": "cassandra", "host": "127.0.0.1", "port": 1}


@pytest.fixture
def bank(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "SparkSession":
    """A session that knows a pipeline with two collections; nothing listens where its Cassandra should be."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "bank.yaml").write_text(BANK)
    (folder / "sales.yaml").write_text(ORDERS)
    monkeypatch.setenv("TIDEMARK_PIPELINES", str(folder))
    register_collections(spark, "bank", look_up=look_up)
    return spark


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "The option `pipeline` is missing. Registered in this session: bank."),
        ({"pipeline": "bonk"}, "Pipeline `bonk` is unknown. Registered in this session: bank."),
        ({"pipeline": "bank"}, "The option `writer` is missing. Collections of bank: accounts, savings."),
        ({"pipeline": "bank", "writer": "x"}, "Writer `x` is no collection. Collections of bank: accounts,"),
        ({"pipeline": "bank", "as_of": "5"}, "There is no option `as_of`. Did you mean `asOf`?"),
        ({"pipeline": "bank", "path": "x"}, "`load` takes no path here"),
        ({"pipeline": "bank", "writer": "accounts", "asOf": "soon"}, "'soon' is no time of a collection"),
        ({"pipeline": "bank", "writer": "accounts"}, "Cassandra does not answer at 127.0.0.1:1"),
    ],
    ids=str,
)
def test_options_that_cannot_be_meant_are_refused_in_one_sentence(
    bank: "SparkSession", options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException) as refused:
        bank.read.format("collection").options(**options).load().collect()
    assert said in str(refused.value)


def test_a_collection_cannot_be_written(bank: "SparkSession") -> None:
    rows = bank.createDataFrame([("a", "Ann")], "id string, owner string")
    with pytest.raises(PySparkException, match="collections are only read"):
        rows.write.format("collection").option("pipeline", "bank").mode("append").save()


def test_only_pipelines_with_collections_are_registered(bank: "SparkSession") -> None:
    with pytest.raises(NotACollection, match="sales: it has no writer of kind `collection`"):
        register_collections(bank, "sales", look_up=look_up)
    with pytest.raises(UnknownPipeline):
        register_collections(bank, "bonk", look_up=look_up)
