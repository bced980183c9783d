"""Items of agent frameworks, stored beside the blocks made from them, without repeating the content of the blocks.

`squeeze` replaces each value of the item that is already in a block with a pointer; `expand` follows the pointers. This
depends on no framework: fields that a framework adds later are restored as well.

    {"role": "user", "content": {"~": "0.text"}}            the text of the first block
    {"arguments": {"~": "0.input|s"}}                       its input as JSON text, spaced as `json.dumps` does it
    {"image_url": {"~": "0.data|u"}}                        its bytes as a data URL; `b` as base64, `w` as that of URLs
    {"response": {"~": "0.content|j"}}                      the value of its JSON text
    {"~~": {"~": 1}}                                        a dict of the item's own that has the key `~`
    {"~": "!…"}                                             what a log cannot hold as it is, as JSON text in ASCII
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, File, Image, Text, ToolCall, ToolResult, bytes_of
from turnlog.log.draft import check_json
from turnlog.log.entry import Entry

_POINTER, _WRAPPED, _WHOLE = "~", "~~", "!"
_SHORT = 8
"""A text shorter than this may occur in an item twice, with two meanings."""
_WORTH = 24
"""Text inside `data`, `details` or `meta` is referenced if it is at least this long."""
_ROOM = 8
"""So many levels are around an item in a log, which has a limit."""
_DEEPEST = 500
"""JSON text that is deeper may be impossible to read again, depending on who reads it."""
_TOO_DEEP = f"nested more than {_DEEPEST} levels deep"
_SPACINGS: dict[str, dict[str, Any]] = {
    "s": {},
    "c": {"separators": (",", ":")},
    "S": {"ensure_ascii": False},
    "C": {"ensure_ascii": False, "separators": (",", ":")},
}
_NESTED = frozenset((dict, list))
GetBlob = Callable[[str], bytes]


class Mismatch(ValueError):
    """The blocks differ from those that the item was squeezed with."""


def squeeze(item: Any, blocks: Sequence[AnyBlock]) -> Any:
    """Return what must be stored of an item beside these blocks, as JSON."""
    try:
        kept = _Squeezer(item, blocks).value(item)
        if encoded(kept) is not None:
            return kept
    except RecursionError:
        pass
    return {_POINTER: _WHOLE + _json_text(item)}


def storable(blocks: Sequence[AnyBlock]) -> list[AnyBlock]:
    """Return the blocks, with a call's input as JSON text where a log cannot hold it. `ValueError` if it is no JSON."""
    return [_storable_block(block) for block in blocks]


def _storable_block(block: AnyBlock) -> AnyBlock:
    if isinstance(block, ToolCall):
        try:
            check_json(block.input, "input", _ROOM)
        except Invalid:
            return msgspec.structs.replace(block, input=_json_text(block.input))
    return block


def _json_text(value: Any) -> str:
    """Return a value as JSON text. `ValueError` or `TypeError` if it is no JSON, or nested too deep to be read."""
    try:
        text = json.dumps(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    depth = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text):
        depth += 1 if bracket in "[{" else -1 if bracket in "]}" else 0
        if depth > _DEEPEST:
            raise ValueError(_TOO_DEEP)
    return text


def expand(kept: Any, blocks: Sequence[AnyBlock], get_blob: GetBlob | None = None, *, edited: bool = False) -> Any:
    """Rebuild the item. Raises `Mismatch` if the blocks do not fit, or `edited` ones hold more than the item."""
    work = _Expander(blocks, get_blob)
    try:
        item = work.value(kept)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, Mismatch):
            raise
        raise Mismatch(f"the item cannot be rebuilt: {error!r:.80}") from None
    if edited and not work.has_used_all():
        raise Mismatch("the blocks say something that the item has no place for")
    return item


def kept_of(entry: Entry, framework: str) -> Any:
    """Return what is stored of a framework's item beside the blocks of an entry; None if the entry is not from it."""
    meta: Any = entry.meta
    return cast("dict[str, Any]", meta).get(framework) if isinstance(meta, dict) else None


class _Squeezer:
    """Replaces what the blocks of an item hold already with pointers to it."""

    def __init__(self, item: Any, blocks: Sequence[AnyBlock]) -> None:
        self._item = item
        self._texts: dict[str, str] = {}
        self._inputs: list[tuple[str, Any, bytes]] = []
        self._data: dict[str, str] = {}
        self._spelt: dict[str, str] = {}
        for index, block in enumerate(blocks):
            self._note(block, str(index))

    def _note(self, block: AnyBlock, where: str) -> None:
        if type(block) is Text and block.meta is None:  # most blocks
            self._note_text(block.text, f"{where}.text")
            return
        for name in ("text", "content", "url"):
            value = getattr(block, name, None)
            if isinstance(value, str):
                self._note_text(value, f"{where}.{name}")
        if isinstance(block, ToolResult) and not isinstance(block.content, str):
            for index, part in enumerate(block.content):
                self._note(part, f"{where}.content.{index}")
        if isinstance(block, (Image, File)):
            if block.data is not None:
                text = b64encode(block.data).decode()
                self._data[urlsafe_b64encode(block.data).decode()] = f"{where}.data|w"
                self._data[text] = f"{where}.data|b"
                self._data[f"data:{block.media_type};base64,{text}"] = f"{where}.data|u"
            return
        if isinstance(block, ToolCall) and block.input is not None:
            if isinstance(block.input, str):
                self._note_text(block.input, f"{where}.input")
            elif (as_json := encoded(block.input)) is not None:
                self._inputs.append((f"{where}.input", block.input, as_json))
        for name in ("data", "details", "meta"):
            self._note_inside(getattr(block, name, None), f"{where}.{name}")

    def _note_inside(self, value: Any, where: str) -> None:
        plain: object = value  # as in `check_json`
        kind = type(plain)
        if issubclass(kind, str):
            if len(value) >= _WORTH:
                self._note_text(value, where)
        elif issubclass(kind, dict):
            for key, inner in value.items():
                if isinstance(key, str) and key and "." not in key and "|" not in key:
                    self._note_inside(inner, f"{where}.{key}")
        elif issubclass(kind, list):
            for index, inner in enumerate(value):
                self._note_inside(inner, f"{where}.{index}")

    def _note_text(self, value: str, where: str) -> None:
        # Text that is not Unicode would be restored from a block only as far as it is readable.
        if _is_unicode(value):
            self._texts.setdefault(value, where)
            if len(value) >= _WORTH and value[0] + value[-1] in ("{}", "[]"):
                self._spelt.setdefault(value, where)

    def value(self, value: Any) -> Any:
        """Return a value of the item as it is stored."""
        plain: object = value  # as in `check_json`
        kind = type(plain)
        if issubclass(kind, str):
            pointer = self._text(value)
            return value if pointer is None else {_POINTER: pointer}
        if not issubclass(kind, (dict, list)):
            return value
        pointer = self._input(value) if self._inputs or self._spelt else None
        if pointer is not None:
            return {_POINTER: pointer}
        if issubclass(kind, list):
            return [self.value(inner) for inner in value]
        squeezed = {key: self.value(inner) for key, inner in value.items()}
        return {_WRAPPED: squeezed} if _POINTER in value or _WRAPPED in value else squeezed

    def _text(self, value: str) -> str | None:
        where = self._texts.get(value)
        if where is not None and (len(value) >= _SHORT or _count(self._item, value) == 1):
            return where
        if self._data and value in self._data:
            return self._data[value]
        if self._inputs and value[:1] in ("{", "["):
            for where, given, _ in self._inputs:
                for letter, options in _SPACINGS.items():
                    if json.dumps(given, **options) == value:
                        return f"{where}|{letter}"
        return None

    def _input(self, value: Any) -> str | None:
        if self._spelt and (where := self._spelt.get(json.dumps(value, ensure_ascii=False))):
            return f"{where}|j"
        for where, given, spelling in self._inputs:
            if type(given) is type(value) and len(given) == len(value) and value and encoded(value) == spelling:
                return where
        return None


def encoded(value: Any) -> bytes | None:
    """Encode a value as JSON that preserves its order and which numbers are whole; None if that is impossible."""
    try:
        check_json(value, "input", _ROOM)
        return msgspec.json.encode(value)
    except (Invalid, TypeError, OverflowError, UnicodeEncodeError, RecursionError):
        return None


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return bool(value)


def _count(item: Any, wanted: str) -> int:
    plain: object = item  # as in `check_json`
    kind = type(plain)
    if issubclass(kind, dict):
        return sum(_count(value, wanted) for value in item.values())
    if issubclass(kind, list):
        return sum(_count(value, wanted) for value in item)
    return int(item == wanted)


class _Expander:
    """Replaces pointers with what they point to in the blocks, and notes which blocks were used."""

    def __init__(self, blocks: Sequence[AnyBlock], get_blob: GetBlob | None) -> None:
        self._blocks = blocks
        self._get_blob = get_blob
        self._used: set[str] = set()

    def has_used_all(self) -> bool:
        """Whether the item used the content of every block."""
        for index, block in enumerate(self._blocks):
            content = getattr(block, "text", None) or getattr(block, "content", None) or getattr(block, "input", None)
            if content and not any(where.startswith(f"{index}.") for where in self._used):
                return False
        return True

    def value(self, kept: Any) -> Any:
        """Return a value as it was in the item."""
        if type(kept) is dict:
            fields = cast("dict[str, Any]", kept)
            if len(fields) == 1:
                if _POINTER in fields:
                    return self._follow(fields[_POINTER])
                fields = fields.get(_WRAPPED, fields)
            return {
                key: (self.value(one) if one else type(one)()) if type(one) in _NESTED else one
                for key, one in fields.items()
            }
        if type(kept) is list:
            return [self.value(one) if type(one) in _NESTED else one for one in cast("list[Any]", kept)]
        return kept

    def _follow(self, pointer: Any) -> Any:
        if not isinstance(pointer, str):
            raise Mismatch(f"{pointer!r:.80} is no place in a block")
        if pointer.startswith(_WHOLE):
            return json.loads(pointer[len(_WHOLE) :])
        where, _, letter = pointer.partition("|")
        self._used.add(where)
        value: Any = self._blocks
        steps = where.split(".")
        try:
            if steps[-1] == "data" and letter in ("b", "u", "w"):
                for step in steps[:-1]:
                    value = _step(value, step)
                return self._bytes(value, letter)
            for step in steps:
                value = _step(value, step)
        except (AttributeError, LookupError, TypeError, ValueError):
            raise Mismatch(f"there is no {where} in these blocks") from None
        if letter and letter != "j" and letter not in _SPACINGS:
            raise Mismatch(f"{pointer!r:.80} is of a later version")
        if letter == "j":
            return self._parsed(value, where)
        return json.dumps(value, **_SPACINGS[letter]) if letter else value

    def _parsed(self, text: Any, where: str) -> Any:
        try:
            return json.loads(text)
        except (TypeError, ValueError):
            raise Mismatch(f"{where} is not JSON any more") from None

    def _bytes(self, block: Image | File, letter: str) -> str:
        data = bytes_of(block, self._get_blob) or b""
        text = (urlsafe_b64encode if letter == "w" else b64encode)(data).decode()
        return text if letter != "u" else f"data:{block.media_type};base64,{text}"


def _step(value: Any, step: str) -> Any:
    if isinstance(value, (list, tuple)):
        return cast("list[Any]", value)[int(step)]
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)[step]
    return getattr(value, step)
