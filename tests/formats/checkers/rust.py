"""What programs in Rust demand of JSON: serde_json, which sofos, rho, owlen and a3s read with."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.formats.checkers import Faults

DEEPEST = 127
"""serde_json gives up at 128."""
_FLOAT = re.compile(r"-?(?:\d+\.\d+|\d(?:\.\d+)?e-?\d+|\d(?:\.\d+)?e\+\d+)")


class Digits(str):
    """A number that is no integer, as it is written."""


def document(data: bytes, found: Faults) -> Any:
    """One value; what is no JSON to serde_json is a fault, and so is another form than it writes itself."""
    value = parsed(data, found)
    if value is not None:
        found.need(pretty(value, "\n") == data.decode(), "not in the form of to_string_pretty")
    return value


def parsed(data: bytes, found: Faults) -> Any:
    """One value of any form."""
    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=Digits)
    except (ValueError, RecursionError) as error:
        found.append(f"no JSON: {error}")
        return None
    _walk(value, found)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _walk(value: Any, found: Faults, depth: int = 1) -> None:
    if not found.need(depth <= DEEPEST, "nested deeper than serde_json reads"):
        return
    if isinstance(value, Digits):
        found.need(_FLOAT.fullmatch(value), f"the number {value}")
    elif isinstance(value, str):
        found.need(not re.search("[\ud800-\udfff]", value), "half a character")
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        found.need(-(1 << 63) <= value < 1 << 64, f"{value:.3g} has more than 64 bits")
    elif isinstance(value, dict):
        for key, item in value.items():
            _walk(key, found, depth)
            _walk(item, found, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _walk(item, found, depth + 1)


def pretty(value: Any, margin: str) -> str:
    """With two spaces for each level, and floats as they were."""
    inner = margin + "  "
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict) and value:
        return "{" + ",".join(f"{inner}{compact(k)}: {pretty(v, inner)}" for k, v in value.items()) + margin + "}"
    if isinstance(value, list) and value:
        return "[" + ",".join(inner + pretty(item, inner) for item in value) + margin + "]"
    return compact(value)


def compact(value: Any) -> str:
    """On one line, and floats as they were."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact(key)}:{compact(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def is_sorted(value: Any) -> bool:
    """Whether free JSON has its keys in the order of their bytes, as `serde_json::Value` has them."""
    if isinstance(value, dict):
        return list(value) == sorted(value, key=str.encode) and all(map(is_sorted, value.values()))
    return all(map(is_sorted, value)) if isinstance(value, list) else True


def is_int(value: Any, bits: int = 64, *, signed: bool = False) -> bool:
    """An integer of so many bits; `5.0` is none."""
    least, most = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    return type(value) is int and least <= value < most


def is_text(value: Any) -> bool:
    """A string, and no number that only looks like one here."""
    return isinstance(value, str) and not isinstance(value, Digits)


def is_number(value: Any) -> bool:
    return isinstance(value, Digits) or is_int(value) or is_int(value, signed=True)


def fields(value: Any, where: str, found: Faults, *names: str) -> dict[str, Any]:
    """An object with exactly these fields, in this order; `?` behind a name means that it may be missing."""
    if not found.need(isinstance(value, dict), f"{where} is no object"):
        return {}
    wanted = [name.rstrip("?") for name in names if not name.endswith("?") or name[:-1] in value]
    found.need(list(value) == wanted, f"{where} has the fields {', '.join(value)}, not {', '.join(wanted)}")
    return value


def pair(value: Any, where: str, found: Faults) -> tuple[str, Any]:
    """An externally tagged value: one key, and what it holds."""
    if not found.need(isinstance(value, dict) and len(value) == 1, f"{where} is no variant: {value!r:.60}"):
        return "", None
    return next(iter(value.items()))
