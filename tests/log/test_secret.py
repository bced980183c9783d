"""Masking: nothing under a secret name is left, and nothing else is touched."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.secret import MASK, is_secret_name, mask

names = st.sampled_from(["api_key", "Authorization", "db-password", "token", "name", "max_tokens", "id", ""])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text("ab", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=10,
)


def secrets(name, value):
    """Every value that a reader could take for a secret."""
    if is_secret_name(name) and value not in (None, "", MASK) and not isinstance(value, bool):
        return [value]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in secrets(key, item)]
    if isinstance(value, list):
        return [found for item in value for found in secrets("", item)]
    return []


@given(names, values)
def test_no_secret_is_left_and_every_one_is_named(name, value):
    before = deepcopy(value)
    masked, where = mask(name, value)
    assert secrets(name, masked) == []
    assert len(where) == len(secrets(name, value))
    assert value == before
    assert mask(name, masked) == (masked, [])


@given(values)
def test_what_has_no_secret_is_returned_as_it_is(value):
    masked, where = mask("name", value)
    assert (masked is value) == (where == [])
