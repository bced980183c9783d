"""JSON to the byte as Rust programs write it: serde_json, plain or indented, and claw's own renderer.

serde_json leaves everything above U+001F as it is, writes the shortest digits that read back as the same float, and
knows integers of 64 bits. Its fields come in the order of the struct, but free JSON is sorted by key: see `by_key`.
"""

from __future__ import annotations

import re
import struct
from _json import encode_basestring as _string  # what `json.encoder` has of it, without the rest of `json`
from math import isfinite
from typing import Any, cast

from turnlog.log.codec import without_surrogates


class F32(float):
    """A number of 32 bits on the Rust side: fewer digits tell it from its neighbours."""


def compact(value: Any, *, plus: bool = False) -> bytes:
    """On one line, without spaces. `plus` is for serde_json since 1.0.147, which writes `1e+16` for `1e16`."""
    return _bytes(_plain(value, _string, plus, is_sorted=False))


def pretty(value: Any, *, plus: bool = False) -> bytes:
    """Indented by two spaces, with no newline at the end."""
    return _bytes(_indented(value, "\n", plus))


def claw(value: Any) -> bytes:
    """As claw renders: sorted keys, and control characters above U+007E escaped, too. Its numbers are integers."""
    return _bytes(_plain(value, _claw_string, False, is_sorted=True))


def by_key(value: Any) -> Any:
    """A copy as `serde_json::Value` holds it: keys sorted, and integers beyond 64 bits as floats.

    Rust sorts by the bytes of UTF-8, which is the order of the code points.
    """
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: by_key(items[key]) for key in sorted(items)}
    if isinstance(value, (list, tuple)):
        return [by_key(item) for item in cast("list[Any]", value)]
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
        return float(value) if abs(value) < 1 << 1023 else None
    return value


def beyond_64_bits(value: Any) -> int:
    """How many integers in free JSON become floats, or nothing, in Rust."""
    if isinstance(value, dict):
        return sum(map(beyond_64_bits, cast("dict[str, Any]", value).values()))
    if isinstance(value, (list, tuple)):
        return sum(map(beyond_64_bits, cast("list[Any]", value)))
    return int(isinstance(value, int) and not -(1 << 63) <= value < 1 << 64)


def trimmed(text: str) -> str:
    """Without the white space around it, as Rust trims: other control characters than Python's `strip`."""
    return text.strip(_WHITE)


_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def fnv1a64(data: bytes) -> int:
    """The 64-bit FNV-1a hash, with which several agents name folders."""
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return total


def fnv1a64_hex(text: str) -> str:
    """That hash of a text as 16 hexadecimal digits."""
    return f"{fnv1a64(text.encode('utf-8', 'surrogatepass')):016x}"


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return cast("str", without_surrogates(text)).encode()


_UPPER_CONTROLS = re.compile("[\x7f-\x9f]")


def _claw_string(text: str) -> str:
    return _UPPER_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", _string(text))


def _scalar(value: Any, string: Any, plus: bool) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return number(value, plus=plus)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _plain(value: Any, string: Any, plus: bool, *, is_sorted: bool) -> str:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        keys = sorted(items) if is_sorted else items
        return "{" + ",".join(f"{string(k)}:{_plain(items[k], string, plus, is_sorted=is_sorted)}" for k in keys) + "}"
    if isinstance(value, (list, tuple)):
        parts = (_plain(item, string, plus, is_sorted=is_sorted) for item in cast("list[Any]", value))
        return "[" + ",".join(parts) + "]"
    return _scalar(value, string, plus)


def _indented(value: Any, margin: str, plus: bool) -> str:
    inner = margin + "  "
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        parts = [f"{_string(key)}: {_indented(item, inner, plus)}" for key, item in items]
        return "{" + inner + f",{inner}".join(parts) + margin + "}" if parts else "{}"
    if isinstance(value, (list, tuple)):
        parts = [_indented(item, inner, plus) for item in cast("list[Any]", value)]
        return "[" + inner + f",{inner}".join(parts) + margin + "]" if parts else "[]"
    return _scalar(value, _string, plus)


def number(value: float, *, plus: bool = False) -> str:
    """A float as serde_json prints it; what JSON cannot say is null."""
    short = isinstance(value, F32)
    if not isfinite(value) or (short and not _fits(value)):
        return "null"
    sign = "-" if str(float(value)).startswith("-") else ""
    size = abs(float(value))
    if size == 0:
        return sign + "0.0"
    digits, point = _shortest_32(size) if short else _split(repr(size))
    least, most = (-6, 13) if short else (-5, 16)
    if 0 < point <= most:
        whole = digits[:point].ljust(point, "0")
        return f"{sign}{whole}.{digits[point:] or '0'}"
    if least < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = f"{'+' if plus and point > 1 else ''}{point - 1}"
    return f"{sign}{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{power}"


def _fits(value: float) -> bool:
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True


def _shortest_32(size: float) -> tuple[str, int]:
    wanted = struct.pack("<f", size)
    if not any(wanted):
        return "0", 1  # too small for 32 bits
    # Nine digits always do.
    texts = (f"{struct.unpack('<f', wanted)[0]:.{count}e}" for count in range(9))
    return _split(next(text for text in texts if _fits(float(text)) and struct.pack("<f", float(text)) == wanted))


def _split(text: str) -> tuple[str, int]:
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(power or 0)
    stripped = digits.lstrip("0")
    return stripped.rstrip("0"), point - (len(digits) - len(stripped))
