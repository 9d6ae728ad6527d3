"""``expireAfter`` as Scala reads and writes it (contract 2.3), and the date it leads to (3.5)."""

from datetime import UTC, date, timedelta, timezone
from decimal import Decimal

import pytest
from tests.support.case_files import micros

from tidemark.journal.codec.expire_after import ExpireAfter, duration, expire_on, read_expire_after
from tidemark.journal.errors import Undecodable

pytestmark = pytest.mark.unit

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("1 day", "1 day"),
        ("30 days", "30 days"),
        ("100 minutes", "100 minutes"),
        ("1 millisecond", "1 millisecond"),
        ("1 min", "1 minute"),
        ("30 h", "30 hours"),
        ("24 hours", "24 hours"),
        ("60 seconds", "60 seconds"),
        ("120s", "120 seconds"),
        ("024 hours", "24 hours"),
        ("0" * 5_000 + "24 hours", "24 hours"),
        ("+024 hours", "24 hours"),
        ("-24 hours", "-24 hours"),
        ("01 hours", "1 hour"),
        ("0 hours", "0 hours"),
        ("1000 ms", "1000 milliseconds"),
        ("24.0 hours", "1 day"),
        ("24. hours", "1 day"),
        ("1.5 hours", "90 minutes"),
        ("0.5 days", "12 hours"),
        ("1e3 ms", "1 second"),
        ("1e3 s", "1000 seconds"),
        (".5 d", "12 hours"),
        (" 1\tda y ", "1 day"),
        ("1 hr", "1 hour"),
        ("3 hrs", "3 hours"),
        ("2 m", "2 minutes"),
        ("5 µs", "5 microseconds"),
        ("7 nanos", "7 nanoseconds"),
        ("0.4 ns", "0 days"),
        ("0.5 ns", "1 nanosecond"),
        ("-1 day", "-1 days"),
        ("+2 days", "2 days"),
        ("9007199254740993 ns", "9007199254740993 nanoseconds"),
        ("9007199254740993.5 ns", "9007199254740994 nanoseconds"),
        ("9223372036854775807 ns", "9223372036854775807 nanoseconds"),
        ("9223372036854775808 ns", "9223372036854775807 nanoseconds"),
        (1000, "1000 milliseconds"),
        (1, "1 millisecond"),
    ],
)
def test_2_3_read_and_written_again(written: str | int, normal: str) -> None:
    """Item 1: a whole number keeps its unit, any other one has the coarsest that is exact."""
    assert read_expire_after(written).text == normal


@pytest.mark.parametrize(
    "written",
    [
        "Inf",
        "MinusInf",
        "Undefined",
        "1",
        "day",
        "",
        "1 year",
        "1 DAY",
        "one day",
        "1_000 s",
        "1\u00a0day",
        "1e300 days",
        "110000 days",
        "-9223372036854775808 ns",
        "9223372036854775807 days",
        "9300000000000000000 ns",
        "9" * 5_000 + " ns",
        9_223_372_036_855,
        1.5,
        Decimal("1E+30"),
        True,
        [],
        {},
    ],
)
def test_2_3_refused(written: object) -> None:
    with pytest.raises(Undecodable):
        read_expire_after(written)


@pytest.mark.parametrize(
    ("nanos", "parts"),
    [
        (100 * 60 * 1_000_000_000, (0, 0, 6_000_000_000_000)),
        (30 * 24 * HOUR, (0, 30, 0)),
        (25 * HOUR, (0, 1, HOUR)),
        (-25 * HOUR, (0, -1, -HOUR)),
    ],
)
def test_3_5_parts_of_the_column(nanos: int, parts: tuple[int, int, int]) -> None:
    assert duration(nanos) == parts


def test_2_3_length_and_unit_are_kept_apart() -> None:
    assert ExpireAfter(1000, "millisecond").nanos == ExpireAfter(1, "second").nanos
    assert ExpireAfter(1000, "millisecond") != ExpireAfter(1, "second")


@pytest.mark.parametrize(("hours", "day"), [(0, 12), (3, 13), (-12, 12)])
def test_3_5_expires_on_a_date_of_the_zone(hours: int, day: int) -> None:
    zone = timezone(timedelta(hours=hours)) if hours else UTC
    assert expire_on(micros("2019-12-12T22:30:00Z"), HOUR, zone) == date(2019, 12, day)
