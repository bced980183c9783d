"""An id of several parts is one id, and those parts again."""

from hypothesis import given
from hypothesis import strategies as st

from turnlog.adapters._compositeid import join_parts, split_parts

_PARTS = st.lists(st.text(alphabet="ab/%2F5", max_size=6), min_size=1, max_size=4)


@given(_PARTS, _PARTS)
def test_no_two_ids_of_several_parts_are_the_same(one, two):
    assert split_parts(join_parts(*one)) == one
    assert (join_parts(*one) == join_parts(*two)) == (one == two)
