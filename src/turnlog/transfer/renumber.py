"""Renumbering lines: a part that becomes a fork begins one entry later than before.

The result is deterministic to the byte, in every home, so that lines which were sent before are recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound, Unsupported
from turnlog.log.codec import Unreadable, decode_body, encode_body, seal
from turnlog.log.draft import UNSTAMPED, prepare, to_ms, to_text
from turnlog.log.entry import AnyEntry, Entry, Head, Unknown
from turnlog.log.field import HoldsHead, NamesEntry, change, change_value, places, shape
from turnlog.log.payload import Blobs

Renumber = Callable[[int], int]
"""A function that returns the new `seq` of an entry."""


def renumbered(
    entry: AnyEntry, number: Renumber, get: Callable[[str], bytes], *, is_alone: bool = False
) -> tuple[AnyEntry, bytes, Blobs]:
    """Return an entry with every `seq` in it changed, its line, and new blobs that it needs.

    `is_alone`: the rest of its batch is in another log.
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
        # A line with a wrong checksum must not become valid by renumbering.
        line = line[:-10] + b'%08x"}' % (int(line[-10:-2], 16) ^ 0xFFFFFFFF)
    return changed, line, blobs


def line_of(entry: Entry) -> bytes:
    """Return the line of an entry that has its stamps."""
    body, start, _ = encode_body(replace(entry, **UNSTAMPED))
    return seal(body, start, stamps_of(entry))[:-1]


def stamps_of(entry: Entry) -> str:
    """Return the stamps that a store would add."""
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
    """Return an entry with the payloads that contain seqs restored, and without states that can be recomputed.

    A state contains too many seqs to renumber. Without it nothing is lost but time.
    """
    recomputed = shape(type(entry)).recomputed
    if recomputed:
        return replace(entry, blob=None, blobs=[], **dict.fromkeys(recomputed))
    if entry.blob is None or not _naming(type(entry)):
        return entry
    try:
        whole = decode_body(get(entry.blob), entry)
    except (NotFound, Corrupt, Unreadable):
        return entry  # the line still has most of it
    return replace(whole, blob=None, blobs=[])


def _naming(cls: type[Entry]) -> dict[str, Any]:
    """The fields of an entry type, besides those of every entry, that refer to other entries, with their types."""
    return {name: declared for name, declared in places(cls, NamesEntry) if name not in Entry.__struct_fields__}


def _planned(head: Any, number: Renumber) -> Any:
    """The head entry of an intent, as plain JSON, renumbered."""
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
