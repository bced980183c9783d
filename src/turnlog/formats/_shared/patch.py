"""What a shape of ours does not say of an object in a file: unknown keys, odd values, another order of keys."""

from __future__ import annotations

from typing import Any

from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.value import fields, listed


def besides(was: Any, now: dict[str, Any]) -> dict[str, Any]:
    """What the original has and the copy has not, or has otherwise."""
    return {
        key: value
        for key, value in fields(was).items()
        if key not in now or type(now[key]) is not type(value) or now[key] != value
    }


def patch_for(rebuilt: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any] | None:
    """What turns the one into the other, with the keys in its order; None if nothing has to be done."""
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
    """The original again."""
    patched = _patched(rebuilt, fields(patch))
    order = listed(fields(patch).get("order"))
    if order:
        names = [name for name in order if name in patched]
        patched = {name: patched[name] for name in [*names, *(name for name in patched if name not in names)]}
    return patched


def _patched(rebuilt: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    gone, changed = listed(patch.get("drop")), fields(patch.get("set"))
    return {**{key: value for key, value in rebuilt.items() if key not in gone}, **changed}
