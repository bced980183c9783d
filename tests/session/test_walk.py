"""How far it is from what people call to the disk."""

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import turnlog
from turnlog.log.codec import strict

_HERE = os.path.dirname(turnlog.__file__) + os.sep
_MOST = 40


def test_one_message_takes_at_most_forty_calls(tmp_path: Path):
    session = turnlog.open(tmp_path).create()
    session.user("the first one says who writes")
    for _ in range(250):  # the first lines of a process are read by a decoder for each type
        strict.decode(b'{"type":"note","id":"n","seq":1,"text":"warm"}')
    session.user("from here on all of them go the same way")
    walk: list[str] = []

    def note(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_HERE):
            walk.append(f"{code.co_filename.removeprefix(_HERE)} {code.co_name}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        session.user("hello")
    finally:
        sys.setprofile(before)
    assert "store/files/disk.py sync" in walk, "it was not written"
    assert len(walk) <= _MOST, "\n".join(walk)
