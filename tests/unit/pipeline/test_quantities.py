"""Sizes and durations as people write them."""

from datetime import timedelta

import pytest

from tidemark.pipeline.quantities import duration_text, parse_duration, parse_size

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, 1),
        ("1B", 1),
        ("2KB", 2_000),
        ("1GB", 1_000_000_000),
        ("1 GB", 1_000_000_000),
        ("1.5MB", 1_500_000),
        ("512MiB", 512 * 1024 * 1024),
        ("1TiB", 1024**4),
    ],
)
def test_a_size_is_read(written, meant):
    assert parse_size(written) == meant


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1gb", "Did you mean `1GB`?"),
        ("512mib", "Did you mean `512MiB`?"),
        ("1 parsec", "`parsec`, which is not known"),
        ("GB", "is not a size"),
        ("1", "is not a size"),
        ("-1GB", "is not a size"),
        ("١GB", "is not a size"),
        (True, "is not a size"),
        (None, "is not a size"),
        (1.5, "is not a size"),
        ("0.5B", "is not a whole number of bytes"),
        (0, "must be between 1 byte"),
        ("0GB", "must be between 1 byte"),
        (-1, "must be between 1 byte"),
        ("99999999TB", "must be between 1 byte"),
    ],
)
def test_what_is_not_a_size_is_refused(written, said):
    with pytest.raises(ValueError, match=r"size|byte|unit") as refused:
        parse_size(written)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0s", timedelta(0)),
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("1h", timedelta(hours=1)),
        ("1h30m", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        (timedelta(hours=1), timedelta(hours=1)),
    ],
)
def test_a_duration_is_read(written, meant):
    assert parse_duration(written) == meant
    assert parse_duration(duration_text(meant)) == meant


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (30, "Did you mean `30s`?"),
        ("30", "is not a duration"),
        ("1 h", "is not a duration"),
        ("-1h", "is not a duration"),
        ("1.5h", "is not a duration"),
        ("", "is not a duration"),
        (True, "is not a duration"),
        (None, "is not a duration"),
        ("1y", "the unit `y`, which is not known"),
        ("9999999999999d", "longer than anything can wait"),
        ("9" * 5000 + "s", "longer than anything can wait"),
    ],
)
def test_what_is_not_a_duration_is_refused(written, said):
    with pytest.raises(ValueError, match=r"duration|unit|wait") as refused:
        parse_duration(written)
    assert said in str(refused.value)
