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
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, cast

import msgspec

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, bytes_of
from turnlog.log.draft import check_json
from turnlog.log.entry import Entry

_POINTER, _WRAPPED, _WHOLE = "~", "~~", "!"
_UNAMBIGUOUS_LENGTH = 8
"""A text shorter than this may occur in an item twice, with two meanings."""
_MIN_INNER_LENGTH = 24
"""Text inside `data`, `details` or `meta` is referenced if it is at least this long."""
_LEVELS_AROUND = 8
"""So many levels are around an item in a log, which has a limit."""
_MAX_DEPTH = 500
"""JSON text that is deeper may be impossible to read again, depending on who reads it."""
_TOO_DEEP = f"nested more than {_MAX_DEPTH} levels deep"
_Speller = Callable[[Any], str]
_SPELLERS: dict[str, _Speller] = {
    "s": json.JSONEncoder().encode,
    "c": json.JSONEncoder(separators=(",", ":")).encode,
    "S": json.JSONEncoder(ensure_ascii=False).encode,
    "C": json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode,
}
"""The usual ways to write JSON as text, by the letter in a pointer."""
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
            check_json(block.input, "input", _LEVELS_AROUND)
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
        if depth > _MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
    return text


def expand(kept: Any, blocks: Sequence[AnyBlock], get_blob: GetBlob | None = None, *, edited: bool = False) -> Any:
    """Rebuild the item. Raises `Mismatch` if the blocks do not fit, or `edited` ones hold more than the item."""
    expander = _Expander(blocks, get_blob)
    try:
        item = expander.value(kept)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, Mismatch):
            raise
        raise Mismatch(f"the item cannot be rebuilt: {error!r:.80}") from None
    if edited and not expander.has_used_all():
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
        # Pointers, by the values of an item that they may replace:
        self._texts: dict[str, str] = {}
        self._json_texts: dict[str, str] = {}
        self._data: dict[str, str] = {}
        self._inputs: _CallInputs | None = None
        self._text_counts: dict[str, int] | None = None
        for index, block in enumerate(blocks):
            self._note(block, str(index))

    def _note(self, block: AnyBlock, where: str) -> None:
        if isinstance(block, Text):
            self._note_text(block.text, f"{where}.text")
        elif isinstance(block, Thinking):
            self._note_text(block.text, f"{where}.text")
            self._note_inside(block.data, f"{where}.data")
        elif isinstance(block, ToolCall):
            self._note_input(block.input, f"{where}.input")
        elif isinstance(block, ToolResult):
            self._note_result(block, where)
        elif isinstance(block, (Image, File)):
            self._note_media(block, where)
            return
        if block.meta is not None:
            self._note_inside(block.meta, f"{where}.meta")

    def _note_input(self, call_input: Any, where: str) -> None:
        if isinstance(call_input, str):
            self._note_text(call_input, where)
        elif call_input is not None and (as_json := encoded(call_input)) is not None:
            self._inputs = self._inputs or _CallInputs()
            self._inputs.add(where, call_input, as_json)

    def _note_result(self, block: ToolResult, where: str) -> None:
        if isinstance(block.content, str):
            self._note_text(block.content, f"{where}.content")
        else:
            for index, part in enumerate(block.content):
                self._note(part, f"{where}.content.{index}")
        self._note_inside(block.details, f"{where}.details")

    def _note_media(self, block: Image | File, where: str) -> None:
        if block.url:
            self._note_text(block.url, f"{where}.url")
        if block.data:
            text = b64encode(block.data).decode()
            self._data[urlsafe_b64encode(block.data).decode()] = f"{where}.data|w"
            self._data[text] = f"{where}.data|b"
            self._data[f"data:{block.media_type};base64,{text}"] = f"{where}.data|u"

    def _note_inside(self, value: Any, where: str) -> None:
        plain: object = value  # as in `check_json`
        kind = type(plain)
        if issubclass(kind, str):
            if len(value) >= _MIN_INNER_LENGTH:
                self._note_text(value, where)
        elif issubclass(kind, dict):
            for key, inner in value.items():
                if isinstance(key, str) and key and "." not in key and "|" not in key:
                    self._note_inside(inner, f"{where}.{key}")
        elif issubclass(kind, list):
            for index, inner in enumerate(value):
                self._note_inside(inner, f"{where}.{index}")

    def _note_text(self, value: object, where: str) -> None:
        # Text that is not Unicode would be restored from a block only as far as it is readable.
        if isinstance(value, str) and value and _is_unicode(value):
            self._texts.setdefault(value, where)
            if len(value) >= _MIN_INNER_LENGTH and value[0] + value[-1] in ("{}", "[]"):
                self._json_texts.setdefault(value, where)

    def value(self, value: Any) -> Any:
        """Return a value of the item as it is stored."""
        plain: object = value  # as in `check_json`
        kind = type(plain)
        if kind is str or issubclass(kind, str):
            pointer = self._text(value)
            return value if pointer is None else {_POINTER: pointer}
        if not issubclass(kind, (dict, list)):
            return value
        pointer = self._input(value) if self._inputs is not None or self._json_texts else None
        if pointer is not None:
            return {_POINTER: pointer}
        if issubclass(kind, list):
            return [self.value(inner) for inner in value]
        squeezed = {key: self.value(inner) for key, inner in value.items()}
        return {_WRAPPED: squeezed} if _POINTER in value or _WRAPPED in value else squeezed

    def _text(self, value: str) -> str | None:
        where = self._texts.get(value)
        if where is not None and (len(value) >= _UNAMBIGUOUS_LENGTH or self._count(value) == 1):
            return where
        if self._data and value in self._data:
            return self._data[value]
        if self._inputs is not None and value[:1] in ("{", "["):
            return self._inputs.find_text(value)
        return None

    def _count(self, text: str) -> int:
        """How often a text is in the item."""
        if self._text_counts is None:
            self._text_counts = {}
            _count_texts(self._item, self._text_counts)
        return self._text_counts[text]

    def _input(self, value: Any) -> str | None:
        if self._json_texts and (where := self._json_texts.get(_SPELLERS["S"](value))):
            return f"{where}|j"
        return None if self._inputs is None else self._inputs.find(value)


class _CallInputs:
    """Pointers to the inputs of calls, by the values of an item that say the same."""

    def __init__(self) -> None:
        self._inputs: list[tuple[str, Any]] = []
        self._pointers: dict[bytes, str] = {}
        self._lengths: set[int] = set()
        self._text_pointers: dict[str, str] = {}
        self._unspelled: Iterator[tuple[tuple[str, Any], tuple[str, _Speller]]] | None = None

    def add(self, pointer: str, call_input: Any, as_json: bytes) -> None:
        """Add an input, which is `as_json` as JSON."""
        self._inputs.append((pointer, call_input))
        if isinstance(call_input, (dict, list)) and call_input:
            self._pointers.setdefault(as_json, pointer)
            self._lengths.add(len(cast("list[Any]", call_input)))

    def find(self, value: Any) -> str | None:
        """The pointer to an input that is equal to a dict or a list."""
        if len(value) not in self._lengths or (as_json := encoded(value)) is None:
            return None
        return self._pointers.get(as_json)

    def find_text(self, text: str) -> str | None:
        """The pointer to an input that is written as this text. No more inputs are written than it takes to find it."""
        if self._unspelled is None:
            self._unspelled = product(self._inputs, _SPELLERS.items())
        if text not in self._text_pointers:
            for (pointer, call_input), (letter, spell) in self._unspelled:
                spelling = spell(call_input)
                self._text_pointers.setdefault(spelling, f"{pointer}|{letter}")
                if spelling == text:
                    break
        return self._text_pointers.get(text)


def _count_texts(value: Any, counts: dict[str, int]) -> None:
    plain: object = value  # as in `check_json`
    kind = type(plain)
    if issubclass(kind, str):
        counts[value] = counts.get(value, 0) + 1
    elif issubclass(kind, (dict, list)):
        for inner in value.values() if issubclass(kind, dict) else value:
            _count_texts(inner, counts)


def encoded(value: Any) -> bytes | None:
    """Encode a value as JSON that preserves its order and which numbers are whole; None if that is impossible."""
    try:
        check_json(value, "input", _LEVELS_AROUND)
        return msgspec.json.encode(value)
    except (Invalid, TypeError, OverflowError, UnicodeEncodeError, RecursionError):
        return None


def _is_unicode(value: str) -> bool:
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


class _Expander:
    """Replaces pointers with what they point to in the blocks, and notes which blocks were used."""

    def __init__(self, blocks: Sequence[AnyBlock], get_blob: GetBlob | None) -> None:
        self._blocks = blocks
        self._get_blob = get_blob
        self._used: set[str] = set()
        """The indexes of blocks, as pointers have them."""

    def has_used_all(self) -> bool:
        """Whether the item used every block that says something."""
        return all(str(index) in self._used or not _says_something(block) for index, block in enumerate(self._blocks))

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
        value: Any = self._blocks
        steps = where.split(".")
        self._used.add(steps[0])
        try:
            if steps[-1] == "data" and letter in ("b", "u", "w"):
                for step in steps[:-1]:
                    value = _step(value, step)
                return self._bytes(value, letter)
            for step in steps:
                value = _step(value, step)
        except (AttributeError, LookupError, TypeError, ValueError):
            raise Mismatch(f"there is no {where} in these blocks") from None
        if letter and letter != "j" and letter not in _SPELLERS:
            raise Mismatch(f"{pointer!r:.80} is of a later version")
        if letter == "j":
            return self._parsed(value, where)
        return _SPELLERS[letter](value) if letter else value

    def _parsed(self, text: Any, where: str) -> Any:
        try:
            return json.loads(text)
        except (TypeError, ValueError):
            raise Mismatch(f"{where} is not JSON any more") from None

    def _bytes(self, block: Image | File, letter: str) -> str:
        data = bytes_of(block, self._get_blob)
        if data is None:
            raise Mismatch("the bytes of a block are elsewhere now")
        text = (urlsafe_b64encode if letter == "w" else b64encode)(data).decode()
        return text if letter != "u" else f"data:{block.media_type};base64,{text}"


def _says_something(block: AnyBlock) -> bool:
    if isinstance(block, (Image, File)):
        return True
    return bool(getattr(block, "text", None) or getattr(block, "content", None) or getattr(block, "input", None))


def _step(value: Any, step: str) -> Any:
    if isinstance(value, (list, tuple)):
        return cast("list[Any]", value)[int(step)]
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)[step]
    return getattr(value, step)
