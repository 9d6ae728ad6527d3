"""Great Expectations on what was delivered: built-in expectations, then the pipeline's own.

They are applied to the heads of the verified entities, each with the number of its differences, and to the
pointers. Nothing is read here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tidemark.journal.head import Head
from tidemark.log.audit import judge, pandas_batch
from tidemark.log.expectations import ExpectationDeclaration, Suite
from tidemark.log.model.audit_result import CRITICAL, Judgement
from tidemark.verification.result import Verification
from tidemark.verification.selection import Entity

COLUMNS = (
    *("topic", "entity", "partition", "offset", "segment_size", "seq_nr", "delete_to", "created", "updated"),
    *("expire_after", "expire_on", "origin", "differences"),
)
COUNTS = ("topic", "same", "different", "not_provable")


def judge_delivered(
    found: Verification, heads: Mapping[Entity, Head | None], suite: Suite
) -> list[Judgement]:
    """Apply all expectations to a verification; ``heads`` are of its sample and of different entities."""
    import pandas as pd

    counts = [
        {"topic": topic, "same": one.same, "different": one.different, "not_provable": one.not_provable}
        for topic, one in found.topics.items()
    ]
    pointers = {
        "keyspace": found.keyspace,
        "pointers": found.pointers,
        "pointers_wrong": found.pointers_wrong,
    }
    rows = pd.DataFrame(list(_rows(found, heads)), columns=[*COLUMNS])
    own = [(one.notes or one.type, one) for one in suite.delivered]
    pipeline = found.pipeline
    judged = judge(
        pipeline,
        pandas_batch(pd.DataFrame(counts, columns=[*COUNTS]), "verified"),
        [("the tables hold what the log says", _at_most("different", 0))],
        ("topic",),
    )
    judged += judge(
        pipeline,
        pandas_batch(pd.DataFrame([pointers]), "pointers"),
        [("pointers are where the position says", _at_most("pointers_wrong", 0))],
        ("keyspace",),
    )
    return judged + judge(
        pipeline,
        pandas_batch(rows, "delivered"),
        [*_always(), *own],
        ("topic", "entity"),
        most=max(len(rows), 1),
    )


def _always() -> Iterator[tuple[str, ExpectationDeclaration]]:
    """The expectations of heads that hold for every pipeline."""
    yield (
        "nothing is deleted beyond the last event",
        ExpectationDeclaration(
            type="expect_column_pair_values_a_to_be_greater_than_b",
            kwargs={
                "column_A": "seq_nr",
                "column_B": "delete_to",
                "or_equal": True,
                "ignore_row_if": "either_value_is_missing",
            },
            severity="warning",
        ),
    )


def _at_most(column: str, number: int) -> ExpectationDeclaration:
    return ExpectationDeclaration(
        type="expect_column_values_to_be_between",
        kwargs={"column": column, "max_value": number},
        severity=CRITICAL,
    )


def _rows(found: Verification, heads: Mapping[Entity, Head | None]) -> Iterator[dict[str, Any]]:
    differences = Counter((one.topic, one.key) for one in found.differences if one.key is not None)
    for entity, head in heads.items():
        row = {} if head is None else head._asdict()
        expires = row.get("expire_on")
        yield {
            **{name: row.get(name) for name in COLUMNS},
            "expire_on": None if expires is None else expires.isoformat(),
            "topic": entity.topic,
            "entity": entity.key,
            "differences": differences[entity.topic, entity.key],
        }
