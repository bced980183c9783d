"""Ids and tool names: as a provider takes them, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from turnlog.log.digest import sha256
from turnlog.log.startup import pattern

_PLAIN = pattern(r"[A-Za-z0-9_-]+")
_MAPPED = pattern(r"([xh])(\d*)-")
_ESCAPED = pattern(r"(?:[A-Za-z0-9_]|-[0-9a-f]{1,6}-)*")


def wire_name(text: str, *, limit: int, nth: int = 1, lettered: bool = False) -> str:
    """An id or name in letters, digits, `_` and `-`, at most `limit` of them; another one for every `nth`.

    `lettered`: it has to begin with a letter or `_`.

    What fits stays. What does not is escaped, which `log_name` undoes; what is then too long becomes a digest,
    which needs the original to be undone.
    """
    begins = not lettered or text[:1].isalpha() or text[:1] == "_"
    if nth == 1 and begins and len(text) <= limit and _PLAIN.fullmatch(text) and not _MAPPED.match(text):
        return text
    turn = "" if nth == 1 else str(nth)
    body = "".join(c if (c.isascii() and c.isalnum()) or c == "_" else f"-{ord(c):x}-" for c in text)
    if len(body) + len(turn) + 2 <= limit:
        return f"x{turn}-{body}"
    stem = re.sub(r"[^A-Za-z0-9_]", "_", text)[: max(0, limit - len(turn) - 35)]
    return f"h{turn}-{stem}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def log_name(text: str, originals: Mapping[str, str] | None = None) -> str:
    """What `wire_name` was given. A digest is only undone if `originals` has it."""
    if originals is not None and text in originals:
        return originals[text]
    mark = _MAPPED.match(text)
    if mark is None or mark[1] != "x" or not _ESCAPED.fullmatch(text, mark.end()):
        return text
    try:
        name = re.sub(r"-([0-9a-f]+)-", lambda code: chr(int(code[1], 16)), text[mark.end() :])
    except ValueError:
        return text
    sent = (wire_name(name, limit=len(text), nth=int(mark[2] or 1), lettered=lettered) for lettered in (False, True))
    return name if text in sent else text
