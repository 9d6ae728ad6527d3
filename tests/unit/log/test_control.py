"""The log's state in the control plane: rows in, rows out, and pages of bindings."""

from dataclasses import replace

import pytest
from tests.support.log_samples import add_binding, given_binding, given_narrow_bindings

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind, Outpaced
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import BadBinding
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.state.control import PAGE, BindingsHead, LogControl, LogHead

pytestmark = pytest.mark.unit

BINDINGS = ObjectKey(ObjectKind.BINDINGS, "orders")
FIRST = given_binding(1_000, 0, ("orders", 0, 0, 5), ("orders", 1, 3, 4))
SECOND = given_binding(2_000, 6, ("orders", 0, 5, 9), run_id="run-2")


class CountingConsensus(MemoryConsensus):
    """Counts the pages that are read."""

    def __init__(self):
        super().__init__()
        self.scans = 0

    def scan(self, key, prefix, **bounds):
        self.scans += 1
        return super().scan(key, prefix, **bounds)


@pytest.fixture
def consensus() -> CountingConsensus:
    return CountingConsensus()


@pytest.fixture
def control(consensus) -> LogControl:
    return LogControl(consensus, "orders")


@pytest.fixture(scope="module")
def pages() -> LogControl:
    """More than two pages of bindings that own one id each: 0 to 449."""
    control = LogControl(MemoryConsensus(), "orders")
    given_narrow_bindings(control, 450)
    return control


# Bindings


def test_nothing_is_bound_at_first(control):
    assert control.bindings_head() == BindingsHead(version=0, upper=0, newest=None, reached={}, topic_ids={})


def test_a_binding_is_found_by_its_t(control):
    add_binding(control, FIRST)
    assert Bindings(control).at(1_000) == FIRST


def test_a_binding_is_found_by_its_run(control):
    add_binding(control, FIRST)
    add_binding(control, SECOND)
    assert Bindings(control).of_run("run-1") == FIRST


def test_a_run_that_made_no_binding_has_none(control):
    add_binding(control, FIRST)
    assert Bindings(control).of_run("run-9") is None


def test_the_head_tells_how_far_the_source_is_bound(control):
    add_binding(control, FIRST)
    add_binding(control, SECOND)
    assert control.bindings_head() == BindingsHead(
        version=2,
        upper=2_001,
        newest=2_000,
        reached={("orders", 0): 9, ("orders", 1): 4},
        topic_ids={"orders": "first orders"},
    )


def test_upper_advances_without_a_binding(control):
    add_binding(control, FIRST)
    control.advance_upper(control.bindings_head(), 5_000)
    assert control.bindings_head() == BindingsHead(
        version=2,
        upper=5_000,
        newest=1_000,
        reached={("orders", 0): 5, ("orders", 1): 4},
        topic_ids={"orders": "first orders"},
    )


def test_upper_never_goes_back(control):
    control.advance_upper(control.bindings_head(), 5_000)
    control.advance_upper(control.bindings_head(), 4_000)
    assert control.bindings_head().upper == 5_000


def test_a_binding_over_a_stale_head_is_outpaced_and_leaves_no_row(control, consensus):
    stale = control.bindings_head()
    add_binding(control, FIRST)
    with pytest.raises(Outpaced):
        control.add_binding(stale, SECOND)
    assert list(consensus.scan(BINDINGS, "").rows) == ["head", "run/run-1", "t/00000000000000001000"]


def test_pipelines_do_not_touch(control, consensus):
    add_binding(control, FIRST)
    assert LogControl(consensus, "invoices").bindings_head() == BindingsHead()


def test_a_topic_s_id_is_the_one_it_was_bound_with_last(control):
    add_binding(control, FIRST)
    made_again = {"orders": "second orders"}
    add_binding(control, given_binding(2_000, 6, ("orders", 0, 0, 1), run_id="r", topic_ids=made_again))
    assert control.bindings_head().topic_ids == made_again


def test_a_head_from_before_ids_were_kept_has_none(control, consensus):
    row = '{"upper": 11, "newest": 10, "reached": [["orders", 0, 5]]}'
    consensus.commit(BINDINGS, 0, Change({"head": row}))
    assert control.bindings_head() == BindingsHead(1, 11, 10, {("orders", 0): 5}, {})


def test_a_binding_that_was_never_made_is_refused_by_its_t(control):
    with pytest.raises(BadBinding, match=r"^orders: there is no binding at 1000\. Nothing was done;"):
        Bindings(control).at(1_000)


# Accepted losses


def given_accepted(lower: int, after: int, topic: str = "orders") -> AcceptedLoss:
    loss = Loss(LossKind.RETENTION, topic, 0, lower, lower + 3)
    return AcceptedLoss(loss, None, after, "ann", "known", 5_000, found=4_000)


def test_nothing_is_lost_at_first(control):
    assert control.accepted_losses() == []


def test_accepted_losses_are_in_the_order_of_the_ids_they_stand_before(control):
    later, earlier = given_accepted(5, after=20, topic="invoices"), given_accepted(9, after=4)
    control.record_losses(control.bindings_head(), [later])
    control.record_losses(control.bindings_head(), [earlier])
    assert control.accepted_losses() == [earlier, later]


def test_the_source_goes_on_behind_a_recorded_loss(control):
    add_binding(control, FIRST)
    before = control.bindings_head()
    control.record_losses(before, [given_accepted(5, after=5)])
    after = replace(before, version=2, reached={("orders", 0): 8, ("orders", 1): 4})
    assert control.bindings_head() == after


def test_a_loss_recorded_over_a_stale_head_is_outpaced_and_leaves_no_row(control):
    stale = control.bindings_head()
    add_binding(control, FIRST)
    with pytest.raises(Outpaced):
        control.record_losses(stale, [given_accepted(5, after=5)])
    assert control.accepted_losses() == []
    assert control.bindings_head().reached == {("orders", 0): 5, ("orders", 1): 4}


# Bindings beyond a position


def test_every_binding_is_beyond_nothing(control):
    add_binding(control, FIRST)
    add_binding(control, SECOND)
    assert list(Bindings(control).after(-1)) == [FIRST, SECOND]


def test_a_binding_that_a_position_has_finished_is_left_out(control):
    add_binding(control, FIRST)
    add_binding(control, SECOND)
    assert list(Bindings(control).after(5)) == [SECOND]


def test_a_binding_that_a_position_is_inside_of_is_there(control):
    add_binding(control, FIRST)
    add_binding(control, SECOND)
    assert list(Bindings(control).after(4)) == [FIRST, SECOND]


def test_nothing_is_beyond_the_end(control):
    add_binding(control, FIRST)
    assert list(Bindings(control).after(5)) == []


def test_nothing_is_beyond_a_position_when_nothing_is_bound(control):
    assert list(Bindings(control).after(-1)) == []


@pytest.mark.parametrize(
    ("position", "first"),
    [(-1, 0), (0, 1), (49, 50), (50, 51), (199, 200), (249, 250), (250, 251), (448, 449)],
)
def test_bindings_of_several_pages_come_oldest_first(pages, position, first):
    assert [binding.base for binding in list(Bindings(pages).after(position))] == list(range(first, 450))


def test_a_position_at_the_end_of_several_pages_leaves_nothing(pages):
    assert list(Bindings(pages).after(449)) == []


@pytest.mark.parametrize("count", [PAGE, 2 * PAGE])
def test_full_pages_are_read_whole(control, count):
    given_narrow_bindings(control, count)
    assert len(list(Bindings(control).after(-1))) == count


def test_a_writer_that_has_one_binding_to_go_reads_one_page(control, consensus):
    given_narrow_bindings(control, 250)
    list(Bindings(control).after(248))
    assert consensus.scans == 1


# The log


def test_the_log_is_empty_at_first(control):
    assert control.log_head() == LogHead(version=0, manifest=None, digest=None, t=0, end=-1)


def test_the_log_is_the_manifest_that_was_put_last(control):
    head = LogHead(
        manifest="manifests/a.json", digest="d" * 64, t=1_000, end=5, segments=1, bytes=700, count=4
    )
    control.replace_log(0, head)
    assert control.log_head() == LogHead(
        version=1,
        manifest="manifests/a.json",
        digest="d" * 64,
        t=1_000,
        end=5,
        segments=1,
        bytes=700,
        count=4,
    )


def test_a_manifest_over_a_stale_log_is_outpaced(control):
    control.replace_log(0, LogHead(t=1_000))
    with pytest.raises(Outpaced):
        control.replace_log(0, LogHead(t=2_000))
    assert control.log_head().t == 1_000


def test_the_offsets_before_a_binding_are_those_of_its_own_partitions(control):
    first = given_binding(1_000, 0, ("orders", 0, 0, 5), ("orders", 1, 0, 2))
    second = given_binding(2_000, 7, ("orders", 1, 2, 4))
    third = given_binding(3_000, 9, ("orders", 0, 5, 6), ("orders", 1, 4, 5), ("orders", 2, 0, 1))
    for binding in (first, second, third):
        control.add_binding(control.bindings_head(), binding)
    assert Bindings(control).offsets_before(third) == {("orders", 0): 4, ("orders", 1): 3}
    assert Bindings(control).offsets_before(first) == {}
