"""Masking: nothing under a secret name is left, and nothing else is touched."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.secret import MASK, is_secret_name, mask, mask_words

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


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        (["wget", "--header=Authorization: Bearer hunter2"], "wget --header=Authorization: [secret]"),
        (["x", "--env=API_KEY=hunter2"], "x --env=API_KEY=[secret]"),
        (["curl", "-HAuthorization: Bearer hunter2"], "curl -HAuthorization: [secret]"),
        (["curl", "-HX-Api-Key: hunter2"], "curl -HX-Api-Key: [secret]"),
        (["docker", "run", "-eSECRET=hunter2", "i"], "docker run -eSECRET=[secret] i"),
        (["sh", "-c", "curl --header='Authorization: Bearer hunter2' -v"],
         "sh -c curl --header='Authorization: [secret]' -v"),
        (["sh", "-c", "bash -c 'curl --token hunter2'"], "sh -c bash -c 'curl --token [secret]"),
        (["sh", "-c", "env=x PASSWORD=hunter2 make"], "sh -c env=x PASSWORD=[secret] make"),
        (["curl", "-H", "Cookie: a=hunter2; b=hunter2"], "curl -H Cookie: [secret]"),
        (["sh", "-c", 'curl -H "Cookie: a=hunter2; b=hunter2" -v'], 'sh -c curl -H "Cookie: [secret]" -v'),
        (["sh", "-c", 'curl "-HSet-Cookie: a=hunter2; b=hunter2" -v'], 'sh -c curl "-HSet-Cookie: [secret]" -v'),
        (["curl", "-H", 'Authorization: Digest username="me", response="hunter2"'], "curl -H Authorization: [secret]"),
        (["curl", "--cookie=a=hunter2; b=hunter2"], "curl --cookie=[secret]"),
        (["x", "--password=hunter2 hunter2", "y"], "x --password=[secret] y"),
        (["x", 'PASSWORD="hunter2 hunter2'], 'x PASSWORD="[secret]"'),
        (["sh", "-c", r'curl -d "{\"password\": \"hunter2\"}"'], r'sh -c curl -d "{\"password\": \"[secret]"'),
        (["curl", "https://example.org/?token=hunter2&n=1"], "curl https://example.org/?token=[secret]&n=1"),
        (["make", "-j2", "CFLAGS=-O2 -g", "name: value"], "make -j2 CFLAGS=-O2 -g name: value"),
    ],
)  # fmt: skip
def test_the_secrets_of_a_command_line_are_masked_wherever_a_name_tells_them(words, masked):
    assert " ".join(mask_words(words)) == masked


@given(st.lists(st.text("ab=:'\"\\ -;H", max_size=12), max_size=4))
def test_a_command_line_without_a_secret_name_is_left_alone(words):
    assert mask_words(words) == words
