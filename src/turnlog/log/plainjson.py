"""Values of a log as JSON, as it stands in a log, and for programs."""

from __future__ import annotations

from typing import Any, Protocol, cast

import msgspec
from msgspec import Raw, Struct

UNKNOWN = "?"
"""The tag of an entry or a block whose kind this version does not know: it holds its JSON text."""


class _Verbatim(Protocol):
    json: str


def _number(value: object) -> int:
    """Encode a subclass of int, such as an estimate of tokens, as a number."""
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a {type(value).__name__} in it")


encode = msgspec.json.Encoder(enc_hook=_number).encode
_FIELDS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _fields(cls: type[Struct]) -> tuple[tuple[str, Any], ...]:
    defaults = _FIELDS.get(cls)
    if defaults is None:
        infos = [f for f in msgspec.structs.fields(cls) if f.name not in ("unknown", "unverified")]
        empty: dict[Any, Any] = {list: [], dict: {}}
        defaults = tuple((f.name, empty.get(f.default_factory, f.default)) for f in infos)
        _FIELDS[cls] = defaults
    return defaults


def flat(value: Any) -> Any:
    """Convert a typed value to plain JSON, as in a log."""
    if isinstance(value, (list, tuple)):
        return [flat(item) for item in cast("list[Any]", value)]
    if not isinstance(value, Struct):
        return value
    tag = value.__struct_config__.tag
    if tag == UNKNOWN:
        return Raw(cast("_Verbatim", value).json.encode())
    plain: dict[str, Any] = {} if tag is None else {"type": tag}
    for name, default in _fields(type(value)):
        item = getattr(value, name)
        if item != default or type(item) is not type(default):
            plain[name] = flat(item) if isinstance(item, (Struct, list, tuple)) else item
    plain.update(getattr(value, "unknown", {}))
    return plain


def json_text(value: Struct) -> str:
    """Convert a typed value to JSON text. Text that is not Unicode is escaped."""
    plain = flat(value)
    try:
        return encode(plain).decode()
    except UnicodeEncodeError:
        import json  # rare, and slow to load

        return json.dumps(_unwrapped(plain), separators=(",", ":"))


def _unwrapped(value: Any) -> Any:
    """Convert a value to one that Python's own encoder takes."""
    if isinstance(value, dict):
        return {key: _unwrapped(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_unwrapped(item) for item in cast("list[Any]", value)]
    return value if isinstance(value, str) else msgspec.json.decode(encode(value))


def json_bytes(value: Any) -> bytes:
    """Encode plain JSON on one line. Text that is not Unicode is escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value)).encode()
