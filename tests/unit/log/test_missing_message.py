"""Why the log has no message with an id, and that only a message that is there is pinned (item 6)."""

import pytest
from tests.support.log_samples import compact, given_binding, publish_all

from tidemark.log.files.parquet import LogFolder
from tidemark.log.missing_message import Missing, NotInTheLog, find_missing
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.publish import read_log
from tidemark.log.state.pins import Pin, pin_message, pins

pytestmark = pytest.mark.unit

DENSE = given_binding(1_000_000, 0, ("orders", 0, 0, 3))
SPARSE = given_binding(2_000_000, 3, ("orders", 0, 3, 6), ("refunds", 0, 0, 2), run_id="run-2")
LATER = given_binding(3_000_000, 8, ("orders", 0, 6, 8), run_id="run-3")


@pytest.fixture
def folder(control, tmp_path) -> LogFolder:
    """Three bindings; ids 4, 6 and 7 never had a message."""
    folder = LogFolder("orders", str(tmp_path))
    publish_all(
        control,
        folder,
        {
            DENSE: {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}},
            SPARSE: {("orders", 0): {3: b"d", 5: b"e"}},
            LATER: {("orders", 0): {6: b"f", 7: b"g"}},
        },
    )
    return folder


def missing(control, folder, id_: int) -> Missing | None:
    return find_missing(control, folder, read_log(control, folder), id_)


@pytest.mark.parametrize(
    ("id_", "reason"),
    [(-1, Missing.BEYOND_THE_END), (10, Missing.BEYOND_THE_END), (4, Missing.HOLE), (9, None), (0, None)],
)
def test_in_a_whole_log_an_id_has_a_message_or_is_a_hole(control, folder, id_, reason):
    assert missing(control, folder, id_) == reason


@pytest.mark.parametrize(
    ("id_", "reason"),
    [
        pytest.param(1, Missing.COMPACTED, id="its capture had no hole"),
        pytest.param(4, Missing.COMPACTED_OR_HOLE, id="its capture had one"),
        pytest.param(6, Missing.HOLE, id="its partition gave nothing at all"),
        pytest.param(2, None, id="it was kept"),
    ],
)
def test_below_a_compaction_the_record_of_the_capture_tells(control, folder, id_, reason):
    compact(control, folder, below=8, keep=lambda id_: id_ in (2, 3))
    assert missing(control, folder, id_) == reason


def test_what_was_accepted_as_lost_is_a_hole_also_below_a_compaction(control, folder):
    lost = Loss(LossKind.RETENTION, "orders", 0, 0, 2)
    control.record_losses(control.bindings_head(), [AcceptedLoss(lost, DENSE.t, -1, "ann", "fine", 1)])
    compact(control, folder, below=8, keep=lambda id_: id_ == 3)
    assert missing(control, folder, 1) is Missing.HOLE
    assert missing(control, folder, 2) is Missing.COMPACTED


def test_without_the_record_of_the_capture_both_are_possible(control, folder, tmp_path):
    compact(control, folder, below=8, keep=lambda id_: id_ == 3)
    for record in (tmp_path / "captured").iterdir():
        record.unlink()
    assert missing(control, folder, 1) is Missing.COMPACTED_OR_HOLE


def test_a_message_that_a_compaction_takes_between_the_look_and_the_pin_is_not_pinned(
    control, folder, monkeypatch
):
    from tidemark.log.state import pins as module

    look = module.refuse_missing

    def outpaced(control, folder, id_):
        seen = look(control, folder, id_)
        if read_log(control, folder).compacted_below == 0:
            compact(control, folder, below=3, keep=lambda id_: id_ == 0)
        return seen

    monkeypatch.setattr(module, "refuse_missing", outpaced)
    with pytest.raises(NotInTheLog, match="compaction has taken its message away") as refused:
        pin_message(control, folder, Pin(1, "ann", "evidence", 1))
    assert (refused.value.id, refused.value.missing, pins(control)) == (1, Missing.COMPACTED, [])
    assert pin_message(control, folder, Pin(0, "ann", "evidence", 1)).id == 0
