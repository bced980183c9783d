"""Values in foreign JSON: what is none of its kind counts as missing."""

from datetime import UTC, datetime

import pytest

from turnlog.interop.value import micros, moment


@pytest.mark.parametrize("amount", [True, False, None, "1", 0, -1, 1e9, float("nan")])
def test_what_is_no_amount_is_not_counted_as_one(amount: object) -> None:
    assert micros(amount) is None


@pytest.mark.parametrize(
    "value",
    [
        "0001-01-01T00:00:00Z", "0999-12-31T23:59:59.999Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
        "1000-01-01T00:00:00+01:00", "0001-01-01", datetime(1, 1, 1, tzinfo=UTC), True, 0, float("nan"), 1e308,
    ],
)  # fmt: skip
def test_a_time_that_no_log_takes_counts_as_missing(value: object) -> None:
    assert moment(value) is None


def test_times_at_the_ends_of_the_years_that_a_log_takes_are_kept() -> None:
    assert moment("1000-01-01T00:00:00Z") == datetime(1000, 1, 1, tzinfo=UTC)
    assert moment("9999-12-31T23:59:59Z") == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert moment("2026-01-01T00:00:00") == datetime(2026, 1, 1, tzinfo=UTC)
    assert moment(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, tzinfo=UTC)
