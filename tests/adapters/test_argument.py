"""What a framework hands in is checked, and says what is wrong with it."""

import pytest

from turnlog import Invalid
from turnlog.adapters._argument import check_id, check_list


@pytest.mark.parametrize("odd", ["", None, 3, b"a"])
def test_an_id_is_a_text(odd):
    with pytest.raises(Invalid, match="thread_id"):
        check_id(odd, "thread_id")


@pytest.mark.parametrize("odd", ["ab", b"ab", {"a": 1}, 3, None])
def test_a_list_is_one(odd):
    with pytest.raises(Invalid, match=r"the items .* are not a list"):
        check_list(odd, "items")
    assert check_list((1, 2), "items") == [1, 2]
