"""Which corrections are void."""

import pytest

from tidemark.operations.corrections import FARTHEST, Correction, is_void

pytestmark = pytest.mark.unit

TOPIC = "d2719a8c-6e9c-4bcb-9d0b-7a4e0f0f6f2a"
LOOKED_AT = 100


def given_correction(looked_at=LOOKED_AT):
    return Correction("sync-1", looked_at, TOPIC)


@pytest.mark.parametrize("last_valid", [None, 0, LOOKED_AT - 1])
def test_a_correction_is_valid_where_the_sender_had_read_every_operation(last_valid):
    assert not is_void(given_correction(), 120, TOPIC, last_valid)


@pytest.mark.parametrize("last_valid", [LOOKED_AT, 119])
def test_a_correction_is_void_where_the_object_has_changed_since(last_valid):
    assert is_void(given_correction(), 120, TOPIC, last_valid)


@pytest.mark.parametrize("last_valid", [120, 500])
def test_an_operation_at_an_offset_that_kafka_has_lost_and_given_again_does_not_count(last_valid):
    assert not is_void(given_correction(), 120, TOPIC, last_valid)


def test_a_correction_right_after_what_was_read_is_valid():
    assert not is_void(given_correction(), LOOKED_AT, TOPIC, LOOKED_AT - 1)


def test_a_correction_is_void_where_it_was_sent_too_late():
    assert not is_void(given_correction(), LOOKED_AT + FARTHEST, TOPIC, None)
    assert is_void(given_correction(), LOOKED_AT + FARTHEST + 1, TOPIC, None)


def test_a_correction_for_an_earlier_topic_of_the_name_is_void():
    assert is_void(given_correction(), 120, "another", None)
