"""Session ids as file names: no two share one, none leaves its folder, every short one can be read back."""

import re
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from turnlog import Invalid
from turnlog.store.files.names import file_name, is_hashed, is_session_file, session_id_of

ids = st.one_of(
    st.text(min_size=1, max_size=300),
    st.text("aAbB./\\~=-_ \0\n", min_size=1, max_size=12),
    st.text("xé", min_size=170, max_size=1000),
).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text))


def folded(name: str) -> str:
    """A name as the least careful file system sees it."""
    return unicodedata.normalize("NFKD", name).casefold()


@given(ids, ids)
def test_no_two_ids_share_a_name_however_names_are_folded(one, other):
    assume(one != other)
    assert folded(file_name(one)) != folded(file_name(other))


@given(ids)
def test_a_name_is_harmless_and_not_too_long(session_id):
    name = file_name(session_id)
    assert re.fullmatch(r"(~[0-9a-f]{64}|[a-z0-9_=-]+)\.jsonl", name)
    assert len(name) <= 255
    assert is_session_file(name)


@given(ids)
def test_a_name_gives_back_its_id_unless_it_is_a_hash(session_id):
    name = file_name(session_id)
    assert session_id_of(name) == (None if is_hashed(name) else session_id)


@given(st.text(max_size=60))
def test_any_file_is_a_session_or_is_not(name):
    found = session_id_of(name)
    assert found is None or file_name(found) == name


@pytest.mark.parametrize(
    "name", ["a.jsonl.bak", "=6X.jsonl", "=61.jsonl", "a~.jsonl", "~x.jsonl.tmp", "", ".jsonl", "=c3.jsonl"]
)
def test_what_we_would_not_have_written_is_foreign(name):
    assert session_id_of(name) is None


def test_a_lower_case_ascii_id_is_its_own_name():
    assert file_name("20261115-070012-k3f9q2m7") == "20261115-070012-k3f9q2m7.jsonl"


@pytest.mark.parametrize("bad", ["", "\ud800", "x" * 5000, None, 7, b"x"])
def test_what_is_no_id_has_no_name(bad):
    with pytest.raises(Invalid):
        file_name(bad)
