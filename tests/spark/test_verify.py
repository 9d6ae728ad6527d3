"""A verification on Spark: evidence comes together by entity, and verdicts come back counted."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.found_in_memory import basis, found_in_memory, given_delivered
from tests.support.journal_samples import TOPIC
from tests.support.journal_samples import JournalWorld as MemoryHouse
from tests.support.services.journal_world import CassandraJournalWorld, Record

from tidemark.connections import CassandraConnection
from tidemark.journal.action import Action, Mark, append
from tidemark.journal.codec.record import write_action
from tidemark.journal.difference import DifferenceKind
from tidemark.journal.events import EncodedEvent, Events
from tidemark.pipeline.expect import Expectation
from tidemark.spark.jobs.diff import judge_both
from tidemark.spark.jobs.evidence import (
    Evidence,
    EvidenceKind,
    batches_of,
    bring_together,
    by_entity,
    of_head,
    of_message,
    of_row,
    to_message,
)
from tidemark.spark.jobs.evidence_sources import deal_files, gather, hash_entities, read_log
from tidemark.spark.jobs.renditions import SparkEngine, count_differences
from tidemark.spark.jobs.verify import count_verdicts, judge_everything
from tidemark.verification.journal.messages import read_records
from tidemark.verification.renditions.matching import RuleMatcher
from tidemark.verification.selection import EVERYTHING, Entity, Everything, Listed
from tidemark.verification.tally import Counts, VerdictTally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

LATER = 10**18


def given_evidence(spark: "SparkSession", records: Iterable[Evidence]) -> "DataFrame":
    """Records, none of them where the others of its entity are."""
    spread = list(records)
    return gather(spark, [spread[number::3] for number in range(3)], lambda records: records)


def of_log(house: MemoryHouse) -> list[Evidence]:
    files = house.log.manifest.files
    return [
        of_message(TOPIC, key, record)
        for file in files
        for key, record in read_records(house.actions, file, Everything(), house.actions.manifest.end)
    ]


def of_tables(
    house: MemoryHouse,
    *keys: str,
    kinds: tuple[EvidenceKind, EvidenceKind] = (EvidenceKind.HEAD, EvidenceKind.ROW),
) -> list[Any]:
    reader, found = house.journal.of(TOPIC), []
    for key in keys:
        if head := reader.head(key):
            found.append(of_head(TOPIC, key, head, kinds[0]))
        for place, cells in reader.rows(key).items():
            found.append(of_row(TOPIC, key, found_in_memory(*place, cells), kinds[1]))
    return found


HISTORY = ("a:A1,2,3 b:A1 c:A1,2 M d:A1", "a:D1 b:P c:A3 e:A2,3 b:A1", "c:A4 d:A2,3 M d:D2")
KEYS = "abcde"


def given_house() -> MemoryHouse:
    return given_delivered(*HISTORY, segment_size=2)


def judged(spark: "SparkSession", house: MemoryHouse, most: int = 100) -> VerdictTally:
    records = [*of_log(house), *of_tables(house, *KEYS)]
    return count_verdicts(
        spark, given_evidence(spark, records), judge_everything(basis(house), most), 3, most
    )


def test_everything_is_as_the_log_says(spark: "SparkSession") -> None:
    tally = judged(spark, given_house())
    assert (tally.topics, tally.total, tally.differences) == ({TOPIC: Counts(same=5)}, 0, [])


def test_damage_is_found_wherever_its_entity_is_judged(spark: "SparkSession") -> None:
    house = given_house()
    house.journal.journal.delete_partition(("c", TOPIC, 1), LATER)
    house.journal.metajournal.insert((TOPIC, of_tables(house, "d")[0].first), ("d",), {"seq_nr": 9}, LATER)
    tally = judged(spark, house)
    assert tally.topics == {TOPIC: Counts(same=3, different=2)}
    assert [(one.kind, one.key, one.seq_nr) for one in tally.differences] == [
        (DifferenceKind.ROW_MISSING, "c", 3),
        (DifferenceKind.ROW_MISSING, "c", 4),
        (DifferenceKind.HEAD_DIFFERS, "d", None),
    ]


def test_only_so_many_differences_are_told(spark: "SparkSession") -> None:
    house = given_house()
    for key in KEYS:
        for place in house.journal.journal.partitions():
            if place[0] == key:
                house.journal.journal.delete_partition(place, LATER)
    tally = judged(spark, house, most=2)
    assert (len(tally.differences), tally.topics[TOPIC].different) == (2, 5)
    assert tally.total == 10


def test_records_of_an_entity_come_together_in_their_order(spark: "SparkSession") -> None:
    house = given_house()
    records = [*of_tables(house, *KEYS), *of_log(house)]
    together = bring_together(given_evidence(spark, records), 2)
    found: dict[str, list[int]] = {}
    rows = together.selectExpr("*", "spark_partition_id() AS place").collect()
    for place in {row.place for row in rows}:
        partition = [row for row in rows if row.place == place]
        keys = [row.key for row in partition]
        assert keys == sorted(keys)
        assert not {row.key for row in rows if row.place != place} & set(keys)
        for row in partition:
            found.setdefault(row.key, []).append(row.kind)
    assert {key: sorted(kinds) for key, kinds in found.items()} == found


def test_two_keyspaces_are_compared_without_a_log(spark: "SparkSession") -> None:
    old, new = given_house(), given_house()
    new.journal.journal.delete_partition(("a", TOPIC, 1), LATER)
    others = of_tables(new, *KEYS, kinds=(EvidenceKind.OTHER_HEAD, EvidenceKind.OTHER_ROW))
    evidence = given_evidence(spark, [*of_tables(old, *KEYS), *others])
    tally = count_verdicts(spark, evidence, lambda batches: judge_both(batches, 100), 3, 100)
    assert tally.topics == {TOPIC: Counts(same=4, different=1)}
    assert [(one.kind, one.key, one.seq_nr) for one in tally.differences] == [
        (DifferenceKind.ROW_MISSING, "a", 3)
    ]


def test_differences_of_two_keyspaces_are_matched_with_rules_in_tasks(spark: "SparkSession") -> None:
    old, new = given_house(), given_house()
    new.journal.journal.delete_partition(("a", TOPIC, 1), LATER)
    others = of_tables(new, *KEYS, kinds=(EvidenceKind.OTHER_HEAD, EvidenceKind.OTHER_ROW))
    evidence = given_evidence(spark, [*of_tables(old, *KEYS), *others])
    rule = Expectation.model_validate({"rows": "missing", "where": "seq_nr == 3", "reason": "meant"})
    for rules, unexplained in (((), 1), ((rule,), 0)):
        found = count_differences(evidence, 2, RuleMatcher(rules))
        assert (found.rows, found.total, found.unexplained) == (5, 1, unexplained)


def test_pieces_of_a_comparison_are_computed_in_tasks_and_progress_is_shown(spark: "SparkSession") -> None:
    shown: list[str] = []
    found = SparkEngine(spark, shown.append).run("numbers", lambda number: number * 2, range(3))
    assert (list(found), shown[-1]) == ([0, 2, 4], "3 of 3 numbers compared")


def test_nothing_to_judge_is_nothing(spark: "SparkSession") -> None:
    evidence = gather(spark, [], lambda records: records)
    assert count_verdicts(spark, evidence, lambda batches: judge_both(batches, 1), 0, 1) == VerdictTally(1)


# The log's side


def given_log(root: Path) -> CassandraJournalWorld:
    """Two bindings of one topic in real files; its tables do not matter here."""
    house = CassandraJournalWorld(root, CassandraConnection(hosts=("127.0.0.1",)), "none")
    house.publish(1_000, [given_record(offset, key, offset) for offset, key in enumerate([b"a", b"b", b"a"])])
    house.publish(2_000, [given_record(3, b"caf\xe9", 3), given_record(4, b"b", 4), given_record(5, None, 5)])
    return house


def given_record(offset: int, key: bytes | None, number: int) -> Record:
    action: Action = append("k", 0, Events((EncodedEvent(number + 1, (), "text", "x"),)))
    if key is None:
        action = Mark("k", 0, "m")
    _, value, _, headers = write_action(action)
    return Record("orders", 0, offset, key, value, 1_700_000_000_000, headers)


def heard(evidence: "DataFrame") -> dict[str, list[int]]:
    rows = bring_together(evidence, 1).collect()
    batches = batches_of(Evidence(*row) for row in rows)
    return {key: [to_message(body).id for _, body in of] for (_, key), of in by_entity(batches)}


def test_messages_come_with_their_keys_as_the_tables_have_them(spark: "SparkSession", tmp_path: Path) -> None:
    log = given_log(tmp_path).log
    evidence = read_log(spark, log.folder, list(log.manifest.files), Everything(), log.end)
    assert heard(evidence) == {"a": [0, 2], "b": [1, 4], "caf\ufffd": [3]}


def test_only_chosen_entities_leave_the_task_that_reads_them(spark: "SparkSession", tmp_path: Path) -> None:
    log, choice = given_log(tmp_path).log, Listed(frozenset({Entity("orders", "caf\ufffd")}))
    assert heard(read_log(spark, log.folder, list(log.manifest.files), choice, log.end)) == {"caf\ufffd": [3]}


def test_entities_of_an_interval_are_chosen_by_its_files(spark: "SparkSession", tmp_path: Path) -> None:
    log = given_log(tmp_path).log
    second = [file for file in log.manifest.files if file.t > 1_000]
    choice = hash_entities(spark, log.folder, second, log.end, EVERYTHING)
    assert choice("orders", ["a", "b", "caf\ufffd"]) == [False, True, True]
    assert heard(read_log(spark, log.folder, list(log.manifest.files), choice, 3)) == {
        "b": [1],
        "caf\ufffd": [3],
    }


def test_files_are_dealt_by_their_size(tmp_path: Path) -> None:
    files = list(given_log(tmp_path).log.manifest.files)
    assert sorted(file.path for group in deal_files(files, 8) for file in group) == [f.path for f in files]
    assert deal_files([], 8) == []
    assert [len(group) for group in deal_files(files, 1)] == [2]


def test_large_records_come_in_small_batches() -> None:
    records = [Evidence("orders", "k", EvidenceKind.ROW, n, 0, bytes(3_000_000)) for n in range(7)]
    assert [batch.num_rows for batch in batches_of(records)] == [3, 3, 1]
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches_of(records[:1]))
