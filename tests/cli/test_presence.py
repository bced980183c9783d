"""What `doctor` says of the agents on this machine."""

import pytest

from turnlog.cli.draw.agenttable import presence_lines
from turnlog.reader.agents.presence import AgentPresence


@pytest.mark.parametrize(("unreadable", "damaged"), [(15, 0), (0, 15), (12, 12), (25, 0), (3, 12)])
def test_files_that_are_not_named_are_counted(unreadable: int, damaged: int):
    one = AgentPresence(
        agent="codex",
        homes=["/home/ann/.codex"],
        sessions=1,
        bytes=1,
        unreadable={f"/no/{number}": "Permission denied" for number in range(unreadable)},
        damaged={f"/bad/{number}": 1 for number in range(damaged)},
        days=None,
        settings=None,
        settings_problem="",
        going=0,
        gone=0,
        unknown={},
    )
    lines = list(presence_lines([one], []))
    named = sum(line.startswith(("/no/", "/bad/")) for line in lines)
    hidden = unreadable + damaged - named
    assert hidden > 0
    assert f"codex: {hidden} more file{'s' * (hidden > 1)} of that kind; --json has them all" in lines
