"""JSON that may be shown on a terminal: the same value, and nothing in it that could drive one."""

from __future__ import annotations

import re

from turnlog.view.visible import UNSEEN, odd_parts

_UNSEEN = f"[{UNSEEN}]"


def safe_json(text: bytes) -> bytes:
    """The same JSON, with what could drive a terminal or deceive the eye written as `\\u009b`."""
    if b"\x7f" not in text and (text.isascii() or not any(map(re.compile(_UNSEEN).search, odd_parts(text)))):
        return text
    return re.sub(_UNSEEN, _json_escape, text.decode()).encode()


def _json_escape(match: re.Match[str]) -> str:
    data = match.group().encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
