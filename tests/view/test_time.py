"""Times as people read them."""

from datetime import UTC, datetime
from time import tzset

import pytest

from turnlog.view.time import local_minute, local_second


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
def test_the_ends_of_the_calendar_are_shown_in_every_zone(monkeypatch: pytest.MonkeyPatch, zone: str):
    monkeypatch.setenv("TZ", zone)
    tzset()
    try:
        for at in (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)):
            assert local_minute(at) and local_second(at)
    finally:
        monkeypatch.undo()
        tzset()
