"""The difference between an object in a file and our object for it: unknown keys, odd values, the order of keys.

A flat patch is for an object whose values are replaced whole (rho, owlen). A deep patch finds the differences within
values, too, and leaves alone what was changed since then (a3s, claw, sofos). Both are kept in logs.
"""

from __future__ import annotations

from typing import Any, cast

from turnlog.interop.rust import compact
from turnlog.interop.value import as_list, fields, in_order
from turnlog.log.digest import sha256


def flat_patch(rebuilt: dict[str, Any], original: dict[str, Any]) -> dict[str, Any] | None:
    """What turns the rebuilt object into the original, with its order of keys; None if they are the same."""
    patch: dict[str, Any] = {}
    changed = {
        key: value for key, value in original.items() if key not in rebuilt or compact(rebuilt[key]) != compact(value)
    }
    if changed:
        patch["set"] = changed
    if gone := [key for key in rebuilt if key not in original]:
        patch["drop"] = gone
    if list(_patched(rebuilt, patch)) != list(original):
        patch["order"] = list(original)
    return patch or None


def apply_flat(rebuilt: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The original object."""
    return in_order(_patched(rebuilt, fields(patch)), as_list(fields(patch).get("order")))


def _patched(rebuilt: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    gone, changed = as_list(patch.get("drop")), fields(patch.get("set"))
    return {**{key: value for key, value in rebuilt.items() if key not in gone}, **changed}


_DEEPEST = 6
"""How far differences are looked for: what lies deeper is one value, so no patch is much deeper than its object."""


def deep_patch(rebuilt: Any, original: Any, depth: int = _DEEPEST, *, keeps_additions: bool = False) -> Any:
    """What turns the rebuilt value into the original, wherever they differ; None if they are the same.

    With `keeps_additions`, fields that only the rebuilt value has stay, as does its text where the original has none:
    the agent needs both. Then the order of fields is that of the rebuilt value.
    """
    if keeps_additions and rebuilt == original:
        return None  # as it mostly is
    if depth and type(rebuilt) is dict and type(original) is dict:
        ours, theirs = fields(rebuilt), fields(original)
        inner: dict[str, Any] = {
            key: deep_patch(ours[key], value, depth - 1, keeps_additions=keeps_additions)
            for key, value in theirs.items()
            if key in ours
        }
        added = {key: value for key, value in theirs.items() if key not in ours}
        is_sorted = keeps_additions or [*(key for key in ours if key in theirs), *added] == list(theirs)
        dropped = {} if keeps_additions else {key: value for key, value in ours.items() if key not in theirs}
        patch: dict[str, Any] = {
            "in": {key: one for key, one in inner.items() if one is not None},
            "add": added,
            "drop": {key: _sum(value) for key, value in dropped.items()},
            "order": [] if is_sorted else list(theirs),
        }
        return {name: value for name, value in patch.items() if value} or None
    our_items, their_items = as_list(rebuilt), as_list(original)
    are_lists = isinstance(rebuilt, list) and isinstance(original, list)
    if depth and are_lists and len(our_items) == len(their_items):
        pairs = enumerate(zip(our_items, their_items, strict=True))
        inner = {str(index): deep_patch(*pair, depth - 1, keeps_additions=keeps_additions) for index, pair in pairs}
        patches = {index: one for index, one in inner.items() if one is not None}
        return {"in": patches} if patches else None
    if isinstance(rebuilt, str):
        is_same = rebuilt == original or (keeps_additions and not isinstance(original, str))
    else:
        is_same = compact(rebuilt) == compact(original)
    if is_same:
        return None
    change: dict[str, Any] = {"is": original, "for": _sum(rebuilt)}
    return change


def apply_deep(rebuilt: Any, patch: Any) -> Any:
    """The original value. What was changed in the rebuilt one since the patch was made stays changed."""
    changes = fields(patch)
    if "is" in changes:
        return changes["is"] if changes.get("for") == _sum(rebuilt) else rebuilt
    inner = fields(changes.get("in"))
    if isinstance(rebuilt, list):
        return [apply_deep(item, inner.get(str(index))) for index, item in enumerate(cast("list[Any]", rebuilt))]
    if not changes or not isinstance(rebuilt, dict):
        return rebuilt
    gone = fields(changes.get("drop"))
    ours = {key: apply_deep(value, inner.get(key)) for key, value in fields(rebuilt).items()}
    ours = {key: value for key, value in ours.items() if key not in gone or gone[key] != _sum(value)}
    return in_order({**fields(changes.get("add")), **ours}, as_list(changes.get("order")) or ours)


def _sum(value: Any) -> str:
    """A short digest of a value."""
    return sha256(compact(value)).hexdigest()[:12]
