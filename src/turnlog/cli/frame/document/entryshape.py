"""What entries have in JSON, told by their classes."""

from __future__ import annotations

from turnlog.cli.frame.document import shape

_KNOWN = {
    "id": shape.text(),
    "seq": shape.number(),
    "at": shape.time(null=True),
    "parent": shape.number(null=True),
    "turn": shape.text(null=True),
    "role": shape.text(),
    "model": shape.text(null=True),
    "blocks": shape.each(),
    "usage": shape.one(null=True),
}
_NEVER = ("unknown", "unverified")


def message_fields() -> shape.Fields:
    """The fields of a message. One that is made for a model, such as a summary, has no number."""
    from turnlog.log.entry import Message

    return _fields(Message.__struct_fields__, ("id", "role"))


def entry_fields() -> shape.Fields:
    """The fields of an entry of any type that this version knows."""
    from turnlog.log.entry import ENTRIES

    return _fields([name for one in ENTRIES.values() for name in one.__struct_fields__], ("id", "seq"))


def _fields(names: list[str] | tuple[str, ...], sure: tuple[str, ...]) -> shape.Fields:
    fields: dict[str, shape.Field] = {"type": shape.text()}
    for name in dict.fromkeys(names):
        if name not in _NEVER:
            fields[name if name in sure else f"[{name}]"] = _KNOWN.get(name, shape.anything())
    return fields
