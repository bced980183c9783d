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
from turnlog.log.codec import UNSTAMPED, Unreadable, decode_body, encode_body, seal
from turnlog.log.draft import prepare, to_ms, to_text
from turnlog.log.entry import AnyEntry, Entry, Head, Unknown
from turnlog.log.field import HoldsHead, NamesEntry, change, change_value, places, shape
from turnlog.log.payload import Blobs

Renumber = Callable[[int], int]
"""The new number of an entry."""


def renumbered(
    entry: AnyEntry, number: Renumber, get: Callable[[str], bytes], *, is_alone: bool = False
) -> tuple[AnyEntry, bytes, Blobs]:
    """An entry with every number in it changed, its line, and blobs that it needs and nobody has yet.

    `is_alone`: the rest of its batch is somewhere else.
    """
    if type(entry) is Unknown and entry.critical:
        raise Unsupported(
            f"entry {entry.seq} ({entry.kind}) can only be renumbered by a newer Turnlog", hint="upgrade Turnlog"
        )
    blobs: Blobs = {}
    changed = change(_whole(entry, get), NamesEntry, number)
    changed = change(changed, HoldsHead, lambda head: _planned(head, number))
    batch = {"more": 0, "batch": 0} if is_alone else {}
    changed = replace(changed, sealed=0, wide=0, **batch)
    if changed.blob is None and entry.blob is not None:
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
    body, start, _ = encode_body(replace(entry, **UNSTAMPED))
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


def _whole(entry: AnyEntry, get: Callable[[str], bytes]) -> Any:
    """An entry with numbers in it that lie in a blob, with them back in place; what is folded from others is left out.

    A state has too many numbers in it. Without it nothing is lost but time.
    """
    recomputed = shape(type(entry)).recomputed
    if recomputed:
        return replace(entry, blob=None, blobs=[], **dict.fromkeys(recomputed))
    if entry.blob is None or not _naming(type(entry)):
        return entry
    try:
        whole = decode_body(get(entry.blob), entry)
    except (NotFound, Corrupt, Unreadable):
        return entry  # the line still says most of it
    return replace(whole, blob=None, blobs=[])


def _naming(cls: type[Entry]) -> dict[str, Any]:
    """The fields of a kind of entry, beside those of every entry, that name others, and their types."""
    return {name: declared for name, declared in places(cls, NamesEntry) if name not in Entry.__struct_fields__}


def _planned(head: Any, number: Renumber) -> Any:
    """The head entry that an intent names, as plain JSON."""
    if not isinstance(head, dict):
        return head
    changed = dict(cast("dict[str, Any]", head))
    for name, declared in _naming(Head).items():
        try:
            value = msgspec.convert(changed[name], declared, strict=False)
        except (KeyError, msgspec.ValidationError):
            continue
        changed[name] = msgspec.to_builtins(change_value(value, declared, NamesEntry, number), str_keys=True)
    return changed
