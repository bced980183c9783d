"""What each agent's own loader demands of a session file, written down apart from our writers: nothing of Turnlog here.

Each module has `faults(path, data)`: what that agent would stumble over, in words; nothing for a file that is fine.
"""

from __future__ import annotations

import json
import re
from typing import Any

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Faults(list[str]):
    """Collects them: `need(condition, what)`."""

    def need(self, fine: object, what: str) -> bool:
        if not fine:
            self.append(what)
        return bool(fine)


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key twice")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def load(text: str) -> Any:
    """Strict JSON: no key twice, no NaN."""
    return json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)


def records(data: bytes, faults: Faults) -> list[dict[str, Any]]:
    """One compact object per line, each with its newline, all of it Unicode."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        faults.append(f"not UTF-8: {error}")
        return []
    faults.need(text.endswith("\n"), "no newline at the end: the next append would be spliced onto the last line")
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        try:
            value = load(line)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if not faults.need(isinstance(value, dict), f"line {number} is no object"):
            continue
        made = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        faults.need(len(made) >= len(line) or "\\u" in line, f"line {number} is not compact")
        faults.need("\\ud8" not in line.lower(), f"line {number} may hold half a character")
        found.append(value)
    return found
