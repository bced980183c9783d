"""Lines with other numbers: a continuation that becomes a fork begins one entry later than it did.

The same lines always give the same ones, to the byte, whoever renumbers them and wherever: so what was sent before is
found again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound, Unsupported
from turnlog.log.codec import Unreadable, decode_body, encode_body, seal
from turnlog.log.draft import prepare, to_ms, to_text
from turnlog.log.entry import (
    AnyEntry,
    Compaction,
    Edit,
    Entry,
    Fold,
    Head,
    Intent,
    Message,
    Ref,
    Uncompact,
    Unknown,
)  # fmt: skip
from turnlog.log.payload import Blobs

Number = Callable[[int], int]
"""The new number of an entry."""
_HEAD = ("to", "asof", "left", "undoes", "before", "after", "intent")
_UNSTAMPED: dict[str, Any] = {
    "seq": 0, "at": None, "clock": None, "parent": None, "more": 0, "batch": 0, "sealed": 0, "again": 0, "wide": 0,
    "unverified": False,
}  # fmt: skip


def renumbered(
    entry: AnyEntry, number: Number, get: Callable[[str], bytes], *, is_alone: bool = False
) -> tuple[AnyEntry, bytes, Blobs]:
    """An entry with every number in it changed, its line, and blobs that it needs and nobody has yet.

    `is_alone`: the rest of its batch is somewhere else.
    """
    if type(entry) is Unknown and entry.critical:
        raise Unsupported(
            f"entry {entry.seq} ({entry.kind}) can only be renumbered by a newer Turnlog", hint="upgrade Turnlog"
        )
    blobs: Blobs = {}
    changed = _whole(entry, get)
    changed = replace(changed, **_references(changed, number))
    batch = {"more": 0, "batch": 0} if is_alone else {}
    again = number(entry.again) if entry.again else 0
    parent = None if entry.parent is None else number(entry.parent)
    changed = replace(changed, seq=number(entry.seq), parent=parent, again=again, sealed=0, wide=0, **batch)
    if changed.blob is None and entry.blob is not None and not isinstance(entry, Fold):
        try:
            draft, blobs = prepare(changed)
        except Invalid as error:
            raise Corrupt(f"entry {entry.seq} cannot be renumbered: {error.message}") from None
        line = seal(draft.body, draft.start, stamps_of(changed))[:-1]
        changed = replace(changed, blobs=draft.blobs)
    else:
        line = line_of(changed)
    if entry.unverified:
        # What somebody edited must not become right on its way.
        line = line[:-10] + b'%08x"}' % (int(line[-10:-2], 16) ^ 0xFFFFFFFF)
    return changed, line, blobs


def line_of(entry: Entry) -> bytes:
    """The line of an entry that has its place."""
    body, start, _ = encode_body(replace(entry, **_UNSTAMPED))
    return seal(body, start, stamps_of(entry))[:-1]


def stamps_of(entry: Entry) -> str:
    """What a store would have stamped it with."""
    stamps = f'"seq":{entry.seq}'
    if entry.at is not None:
        stamps += f',"at":"{to_text(to_ms(entry.at))}"'
    if entry.parent is not None:
        stamps += f',"parent":{entry.parent}'
    if entry.clock is not None:
        stamps += f',"clock":"{to_text(to_ms(entry.clock))}"'
    if entry.batch:
        stamps += f',"more":{entry.more},"batch":{entry.batch}'
    return stamps + (f',"again":{entry.again}' if entry.again else "")


def _whole(entry: Any, get: Callable[[str], bytes]) -> Any:
    """An entry with numbers in it that lie in a blob, with them back in place."""
    if entry.blob is None or not isinstance(entry, (Head, Intent)):
        return entry
    try:
        whole = decode_body(get(entry.blob), entry)
    except (NotFound, Corrupt, Unreadable):
        return entry  # the line still says most of it
    return replace(whole, blob=None, blobs=[])


def _references(entry: AnyEntry, number: Number) -> dict[str, Any]:
    """The fields of an entry that name other entries."""
    if isinstance(entry, Compaction):
        items: list[Message | Ref] = [
            Ref(number(item.entry)) if isinstance(item, Ref) else item for item in entry.replacement
        ]
        return {"keep": number(entry.keep), "replacement": items}
    if isinstance(entry, Uncompact):
        return {"compaction": number(entry.compaction)}
    if isinstance(entry, Edit):
        return {"entry": number(entry.entry)}
    if isinstance(entry, Head):
        system = {number(key): number(value) for key, value in entry.system.items()}
        return {**{name: number(getattr(entry, name)) for name in _HEAD}, "system": system}
    if isinstance(entry, Intent):
        return {"before": number(entry.before), "head": _planned(entry.head, number)}
    if isinstance(entry, Fold):
        # A state has too many numbers in it. Without it nothing is lost but time.
        return {"upto": number(entry.upto), "state": None, "blob": None, "blobs": []}
    return {}


def _planned(head: Any, number: Number) -> Any:
    """The head entry that an intent names, as plain JSON."""
    if not isinstance(head, dict):
        return head
    plain = cast("dict[str, Any]", head)
    changed = {**plain, **{name: number(plain[name]) for name in _HEAD if isinstance(plain.get(name), int)}}
    if "system" in plain:
        try:
            system = msgspec.convert(plain["system"], dict[int, int], strict=False)
        except msgspec.ValidationError:
            return changed
        changed["system"] = {str(number(key)): number(value) for key, value in system.items()}
    return changed
