"""The worked examples of the papers behind the log, in our form.

R3.2 and R3.4 are the bindings of `specs/renditions.md`; its times are milliseconds, ours microseconds. T5 to
T9, T12 to T14, T19 and T20 are cases of `specs/transporter.md`. T1 to T4, T10, T11, T15 to T18 and T40 are
about the bytes of the Go code's binary files (records, headers, byte positions, torn tails) and have no
counterpart here: our files are Parquet, appear whole or not at all, and are looked up by the manifest.
"""

from dataclasses import dataclass

import pytest
from pydantic import ValidationError
from tests.support.consensus import RacingConsensus
from tests.support.log_samples import (
    PUBLISHED_AT,
    SEGMENT_BYTES,
    capture,
    given_binding,
    given_kafka,
    given_many_messages,
    mark_published,
    publish_all,
    write_file,
)

from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.bind import OffsetsLost, bind
from tidemark.log.errors import BeyondTheEnd, FileMissing, FolderUnusable
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Available, Binding, Offsets, Slice
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.publish import publish, read_log
from tidemark.log.read import select
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import Pipeline

pytestmark = pytest.mark.unit

# R3.2: bindings (exclusive next offsets), source with partitions p0, p1, later p2

MS = 1_000


def given_next_offsets(*next_offsets: int) -> Available:
    """How far p0, p1, … have come."""
    return given_kafka({("p", number): Offsets(0, upper) for number, upper in enumerate(next_offsets)})


TABLE = {
    10 * MS: given_next_offsets(100, 40),
    20 * MS: given_next_offsets(100, 55),
    30 * MS: given_next_offsets(130, 55, 12),
    40 * MS: given_next_offsets(131, 90, 12),
    50 * MS: given_next_offsets(131, 90, 12),
}
"""What Kafka holds at each of the example's times."""


@dataclass(frozen=True)
class Source:
    consensus: RacingConsensus
    control: LogControl

    def bind(self, now: int, available: Available, run_id: str) -> Binding | None:
        return bind(self.control, available, 1_000, now, run_id)

    def time_of(self, partition: int, offset: int) -> int | None:
        """The time an offset is bound at, in ms."""
        for binding in self.control.bindings_after(-1):
            for s in binding.slices:
                if s.partition == partition and s.lower <= offset < s.upper:
                    return binding.t // MS
        return None


@pytest.fixture
def source() -> Source:
    """The example's table, bound and published row by row."""
    consensus = RacingConsensus()
    source = Source(consensus, LogControl(consensus, "orders"))
    for now, available in TABLE.items():
        if binding := source.bind(now, available, f"run at {now}"):
            mark_published(source.control, binding)
    return source


def test_R3_2_the_ranges_processed_at_each_time(source):
    found = {binding.t: binding.slices for binding in source.control.bindings_after(-1)}
    assert found == {
        10 * MS: (Slice("p", 0, 0, 100), Slice("p", 1, 0, 40)),
        20 * MS: (Slice("p", 1, 40, 55),),
        30 * MS: (Slice("p", 0, 100, 130), Slice("p", 2, 0, 12)),
        40 * MS: (Slice("p", 0, 130, 131), Slice("p", 1, 55, 90)),
    }


@pytest.mark.parametrize(
    ("partition", "offset", "time"),
    [(0, 99, 10), (0, 100, 30), (1, 39, 10), (1, 40, 20), (1, 55, 40), (2, 11, 30), (2, 12, None)],
)
def test_R3_2_every_offset_has_its_time(source, partition, offset, time):
    assert source.time_of(partition, offset) == time


def test_R3_2_time_passes_without_a_row(source):
    head = source.control.bindings_head()
    assert (head.upper, head.newest) == (50 * MS, 40 * MS)


def test_R3_2_a_proposal_that_goes_back_is_refused(source):
    before = source.control.bindings_head()
    with pytest.raises(OffsetsLost) as refusal:
        source.bind(60 * MS, given_next_offsets(125, 90, 12), "run")
    assert refusal.value.losses == (Loss(LossKind.TRUNCATED, "p", 0, 125, 131),)
    assert source.control.bindings_head() == before


# R3.4: two contending binders, one winner

X, Y = given_next_offsets(140, 95, 12), given_next_offsets(138, 97, 13)
WON = (Slice("p", 0, 131, 138), Slice("p", 1, 90, 97), Slice("p", 2, 12, 13))


def contend(source: Source) -> tuple[Binding, Binding]:
    """Both see the same head; Y commits first. The bindings that X and Y go on with."""
    winner: list[Binding] = []
    source.consensus.before_next_commit = lambda: winner.append(source.bind(60 * MS, Y, "Y"))
    return source.bind(60 * MS, X, "X"), winner[0]


def test_R3_4_both_go_on_with_the_winner_s_row(source):
    x, y = contend(source)
    assert (y.t, y.slices, y.run_id) == (60 * MS, WON, "Y")
    assert x == y


def test_R3_4_the_loser_s_proposal_is_nowhere(source):
    contend(source)
    assert [b.slices for b in source.control.bindings_after(-1) if b.t >= 60 * MS] == [WON]


def test_R3_4_what_only_the_loser_had_seen_belongs_to_a_later_time(source):
    _, y = contend(source)
    mark_published(source.control, y)
    later = source.bind(70 * MS, given_next_offsets(140, 97, 13), "X again")
    assert (later.t, later.slices) == (70 * MS, (Slice("p", 0, 138, 140),))


def test_R3_4_the_next_run_after_a_crash_of_both_does_the_same(source):
    _, y = contend(source)
    assert source.bind(65 * MS, X, "Z") == y


def test_R3_4_both_publish_the_row_and_it_is_there_once(tmp_path):
    control, folder = LogControl(MemoryConsensus(), "orders"), LogFolder("orders", str(tmp_path))
    binding = bind(control, given_next_offsets(2, 1), 1_000, 60 * MS, "Y")
    heads = []
    for _ in ("X", "Y"):
        capture(folder, binding, {("p", 0): {0: b"a", 1: b"b"}, ("p", 1): {0: b"c"}})
        heads.append(publish(control, folder, binding, SEGMENT_BYTES, PUBLISHED_AT))
    assert heads[0] == heads[1]
    assert (heads[0].end, heads[0].count) == (2, 3)


# T5 to T9: opening a log


@pytest.fixture
def folder(tmp_path) -> LogFolder:
    return LogFolder("orders", str(tmp_path / "log"))


def test_T5_a_new_log_has_no_segment_yet_and_its_next_id_is_0(control, folder):
    log = read_log(control, folder)
    assert (log.segment_count, log.compacted_below, log.end + 1) == (0, 0, 0)


def test_T6_a_log_without_a_path_is_refused_when_the_pipeline_is_loaded():
    pipeline = {
        "name": "orders",
        "source": {"kafka": {"topics": ["orders"]}},
        "log": {"path": ""},
        "writers": [{"name": "cassandra", "kind": "journal"}],
    }
    with pytest.raises(ValidationError, match=r"log\.path\n.*an absolute path or a URI"):
        Pipeline.model_validate(pipeline, context={"TIDEMARK_HOME": "/home/tidemark"})


def test_T7_a_segment_of_2_records_makes_2_the_next_id(control, folder):
    publish_all(
        control, folder, {given_binding(10, 0, ("orders", 0, 0, 2)): {("orders", 0): {0: b"a", 1: b"b"}}}
    )
    head = control.log_head()
    assert (head.end + 1, head.segments) == (2, 1)


def test_T8_two_segments_of_1_record_each_make_2_the_next_id(control, folder):
    for base in (0, 1):
        binding = given_binding(10 * (base + 1), base, ("orders", 0, base, base + 1))
        capture(folder, binding, {("orders", 0): {base: b"a"}})
        publish(control, folder, binding, 1, PUBLISHED_AT)
    log = read_log(control, folder)
    assert (log.end + 1, next(log.files).first_id, log.segment_count) == (2, 0, 2)


@pytest.mark.parametrize(
    "taken",
    [
        pytest.param("log", id="the folder"),
        pytest.param("log/files", id="a folder in it"),
        pytest.param("log/files/00000000000000000000-00000000000000000001.parquet/x", id="the file"),
    ],
)
def test_T9_a_log_that_cannot_be_written_is_refused_by_its_path(folder, tmp_path, taken):
    (tmp_path / taken).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / taken).write_bytes(b"somebody's")
    with pytest.raises(FolderUnusable) as refusal:
        capture(folder, given_binding(10, 0, ("orders", 0, 0, 2)), {("orders", 0): {0: b"a"}})
    assert refusal.value.path == f"{tmp_path}/log"
    assert (tmp_path / taken).read_bytes() == b"somebody's"


def test_T9_a_log_that_cannot_be_read_is_refused_by_its_path(control, folder, tmp_path):
    publish_all(control, folder, {given_binding(10, 0, ("orders", 0, 0, 1)): {("orders", 0): {0: b"a"}}})
    (tmp_path / "log").rename(tmp_path / "elsewhere")
    (tmp_path / "log").write_bytes(b"somebody's")
    with pytest.raises(FileMissing, match=f"orders: {tmp_path}/log/{control.log_head().manifest} is missing"):
        read_log(control, folder)


# T12 to T14: rolling of segments


def given_files(records: int, each: int) -> list[LogFile]:
    """Files of ``each`` records of 37 bytes, with consecutive ids."""
    return [
        LogFile(f"files/{first}", 10, "orders", 0, first, first + each - 1, each, 37 * each, "d" * 64)
        for first in range(0, records, each)
    ]


def given_rolled(files: list[LogFile], segment_bytes: int) -> Manifest:
    """A log with one of the files in each binding."""
    log = Manifest("orders")
    for number, file in enumerate(files, 1):
        log = log.with_binding(number, file.last_id, [file], segment_bytes)
    return log


def first_ids(log: Manifest) -> list[int]:
    return [segment.files[0].first_id for segment in log.segments]


def test_T12_a_segment_of_at_most_10_bytes_is_full_after_37_and_not_before():
    one, two = given_files(2, each=1)
    before = Manifest("orders").with_binding(10, 0, [one], 10)
    assert [len(segment.files) for segment in before.segments] == [1]
    after = before.with_binding(20, 1, [two], 10)
    assert [segment.files for segment in after.segments] == [(one,), (two,)]


def test_T13_two_records_of_37_bytes_fill_two_segments_of_37_bytes():
    log = given_rolled(given_files(2, each=1), 37)
    assert (first_ids(log), [segment.bytes for segment in log.segments]) == ([0, 1], [37, 37])


def test_T14_a_segment_of_1_MiB_holds_28340_records_of_37_bytes():
    """28,339 records are 1,048,543 bytes, one too few; in files of 436 records, 65 of them are 28,340."""
    log = given_rolled(given_files(85_020, each=436), 2**20)
    assert first_ids(log) == [0, 28_340, 56_680]
    assert [sum(f.count for f in segment.files) for segment in log.segments] == [28_340] * 3
    assert [segment.bytes for segment in log.segments] == [1_048_580] * 3


# T19 and T20: reading


@pytest.fixture(scope="module")
def three_segments(tmp_path_factory) -> tuple[Manifest, str]:
    """Segments that begin with the ids 0, 28340 and 56680: 85,020 records."""
    root = str(tmp_path_factory.mktemp("three"))
    log = Manifest("orders")
    for number, first in enumerate((0, 28_340, 56_680), 1):
        binding = given_binding(100_000 * number, first, ("orders", 0, first, first + 28_340))
        batches = given_many_messages(binding).to_batches()
        written = write_file(LogFolder("orders", root), binding, binding.slices[0], batches)
        log = log.with_binding(binding.t, binding.end, [written.file], 1)
    return log, root


@pytest.mark.parametrize("start", [-1, 0, 28_339, 28_340, 56_679, 56_680, 85_015])
def test_T19_a_reader_gets_everything_from_its_start_to_the_end(three_segments, start):
    log, root = three_segments
    batches = list(select(log, root, first_id=start).batches(["id"]))
    assert first_ids(log) == [0, 28_340, 56_680]
    assert sum(batch.num_rows for batch in batches) == 85_020 - max(start, 0)
    assert batches[0].column("id")[0].as_py() == max(start, 0)


def test_T20_a_reader_beyond_the_end_is_refused(three_segments):
    log, root = three_segments
    with pytest.raises(BeyondTheEnd) as refusal:
        select(log, root, first_id=156_680)
    assert (refusal.value.first_id, refusal.value.end) == (156_680, 85_019)
