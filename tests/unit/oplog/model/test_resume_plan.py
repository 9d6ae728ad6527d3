"""Where what a client has missed comes from."""

import pytest

from tidemark.oplog.model.resume_plan import (
    KafkaOffsets,
    LoggedOffsets,
    ResumePlan,
    Source,
    needs_log,
    plan_resume,
)

pytestmark = pytest.mark.unit

KAFKA = KafkaOffsets(100, 200)


@pytest.mark.parametrize(
    ("offset", "logged", "source"),
    [
        (200, None, Source.NONE),
        (100, None, Source.KAFKA),
        (199, LoggedOffsets(0, 150), Source.KAFKA),
        (99, LoggedOffsets(0, 150), Source.LOG),
        (99, LoggedOffsets(99, 100), Source.LOG),
        (98, LoggedOffsets(99, 150), Source.COLLECTION),
        (99, LoggedOffsets(0, 99), Source.COLLECTION),
        (99, None, Source.COLLECTION),
        (201, LoggedOffsets(0, 300), Source.AHEAD),
    ],
)
def test_the_source_of_one_partition(offset: int, logged: LoggedOffsets | None, source: Source) -> None:
    plan = plan_resume((offset,), [KAFKA], {} if logged is None else {0: logged})
    assert plan.sources == (source,)


def test_R16_a_plan_is_exact_where_every_partition_is() -> None:
    assert plan_resume((150, 50), [KAFKA, KAFKA], {1: LoggedOffsets(0, 150)}).is_exact


def test_a_plan_is_not_exact_where_one_partition_is_not() -> None:
    assert not plan_resume((150, 50), [KAFKA, KAFKA], {}).is_exact


def test_the_log_is_asked_about_partitions_that_kafka_has_lost() -> None:
    assert needs_log((150, 50), [KAFKA, KAFKA]) == (1,)


def test_an_offset_beyond_the_end_is_of_another_topic() -> None:
    assert plan_resume((150, 201), [KAFKA, KAFKA], {}).is_foreign


def test_rows_are_wanted_of_lost_partitions_only() -> None:
    plan = plan_resume((150, 50), [KAFKA, KAFKA], {})
    assert plan.beyond == (None, 50)


def test_after_the_rows_a_partition_that_kafka_has_goes_on_where_it_was() -> None:
    plan = plan_resume((150, 50), [KAFKA, KAFKA], {})
    assert plan.after_rows((180, 170)) == (150, 170)


def test_the_vector_after_the_rows_is_never_before_the_client() -> None:
    assert ResumePlan((50,), (Source.COLLECTION,)).after_rows((40,)) == (50,)
