"""The difference between an object in a file and our type for it: unknown keys, odd values, the order of keys."""

from __future__ import annotations

from typing import Any, cast

from turnlog.interop.rust import compact
from turnlog.interop.value import as_list, fields, in_order
from turnlog.log.digest import sha256


def patch_for(rebuilt: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any] | None:
    """The patch that turns one object into the other, with its order of keys; None if they are the same."""
    patch: dict[str, Any] = {}
    changed = {
        key: value for key, value in raw.items() if key not in rebuilt or compact(rebuilt[key]) != compact(value)
    }
    if changed:
        patch["set"] = changed
    if gone := [key for key in rebuilt if key not in raw]:
        patch["drop"] = gone
    if list(_patched(rebuilt, patch)) != list(raw):
        patch["order"] = list(raw)
    return patch or None


def apply(rebuilt: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Restore the original object."""
    return in_order(_patched(rebuilt, fields(patch)), as_list(fields(patch).get("order")))


def _patched(rebuilt: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    gone, changed = as_list(patch.get("drop")), fields(patch.get("set"))
    return {**{key: value for key, value in rebuilt.items() if key not in gone}, **changed}


_DEEP = 6
"""How far a difference is looked for: what lies deeper is one value, so no patch is much deeper than its object."""


def difference(made: Any, original: Any, deep: int = _DEEP, *, mends: bool = False) -> Any:
    """What `restored` needs to make the original of a copy, wherever in it they differ; None if they do not.

    With `mends`, fields that only the copy has stay, and text where the original has none: its agent misses both. The
    order of fields is the copy's then.
    """
    if mends and made == original:
        return None  # as it mostly is
    if deep and type(made) is dict and type(original) is dict:
        ours, theirs = fields(made), fields(original)
        inner = {
            key: difference(ours[key], value, deep - 1, mends=mends) for key, value in theirs.items() if key in ours
        }
        added = {key: value for key, value in theirs.items() if key not in ours}
        is_sorted = mends or [*(key for key in ours if key in theirs), *added] == list(theirs)
        patch: dict[str, Any] = {
            "in": {key: one for key, one in inner.items() if one is not None},
            "add": added,
            "drop": {key: _sum(value) for key, value in ours.items() if key not in theirs and not mends},
            "order": [] if is_sorted else list(theirs),
        }
        return {name: value for name, value in patch.items() if value} or None
    ours_listed, theirs_listed = as_list(made), as_list(original)
    if deep and made is ours_listed and original is theirs_listed and len(ours_listed) == len(theirs_listed):
        pairs = enumerate(zip(ours_listed, theirs_listed, strict=True))
        inner = {str(index): difference(*pair, deep - 1, mends=mends) for index, pair in pairs}
        items = {index: one for index, one in inner.items() if one is not None}
        return {"in": items} if items else None
    if isinstance(made, str):
        is_same = made == original or (mends and not isinstance(original, str))
    else:
        is_same = compact(made) == compact(original)
    return None if is_same else {"is": original, "for": _sum(made)}


def restored(made: Any, patch: Any) -> Any:
    """Restore the original object. Where the copy says something else by now, that stays."""
    changes = fields(patch)
    if "is" in changes:
        return changes["is"] if changes.get("for") == _sum(made) else made
    inner = fields(changes.get("in"))
    if isinstance(made, list):
        return [restored(item, inner.get(str(index))) for index, item in enumerate(cast("list[Any]", made))]
    if not changes or not isinstance(made, dict):
        return made
    gone = fields(changes.get("drop"))
    ours = {key: restored(value, inner.get(key)) for key, value in fields(made).items()}
    ours = {key: value for key, value in ours.items() if key not in gone or gone[key] != _sum(value)}
    return in_order({**fields(changes.get("add")), **ours}, as_list(changes.get("order")) or ours)


def _sum(value: Any) -> str:
    """A short digest of a value."""
    return sha256(compact(value)).hexdigest()[:12]
