"""A patch beside a copy: the original comes back, and what was changed in the copy since then stays."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnlog.interop.patch import apply_deep, deep_patch

KEYS = st.sampled_from(["a", "b", "in", "is", "for", "add", "drop", "order"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 2.5]) | st.sampled_from(["", "a", "1"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@given(VALUES, VALUES)
def test_the_original_comes_back_with_its_order(made: Any, original: Any) -> None:
    assert json.dumps(apply_deep(made, deep_patch(made, original))) == json.dumps(original)


def test_nothing_is_kept_of_what_is_the_same() -> None:
    assert deep_patch({"a": [{"b": 1}]}, {"a": [{"b": 1}]}) is None


def test_what_the_copy_says_otherwise_by_now_stays() -> None:
    made = {"role": "user", "content": [{"text": "old", "is_error": False}]}
    original = {"role": "developer", "content": [{"text": "old", "is_error": None, "mark": 1}]}
    patch = deep_patch(made, original)
    edited = {"role": "user", "content": [{"text": "new", "is_error": True}]}
    content = [{"text": "new", "is_error": True, "mark": 1}]
    assert apply_deep(edited, patch) == {"role": "developer", "content": content}


def test_a_patch_that_mends_leaves_what_an_agent_misses() -> None:
    made = {"type": "result", "name": "tool", "flag": False}
    original = {"flag": None, "name": {}, "more": 1}
    patch = deep_patch(made, original, keeps_additions=True)
    assert list(apply_deep(made, patch).items()) == [("type", "result"), ("name", "tool"), ("flag", None), ("more", 1)]
