"""Numbers as people read them."""

import pytest

from turnlog import Usage
from turnlog.view.number import count, dollars, money, size, tokens, used


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "$0.00"), (1, "<$0.01"), (4_999, "<$0.01"), (5_000, "$0.01"), (1_234_567, "$1.23"), (9_999_000_000, "$9,999")],
)
def test_money_in_a_column(micros: int, text: str):
    assert dollars(micros) == text


def test_money_with_an_unknown_part_says_so():
    assert dollars(1_230_000, is_partial=True) == "$1.23+"
    assert dollars(0, is_partial=True) == "?"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (99_940, "99.9k"), (123_456, "123k"), (999_600, "1.0M"), (4.5e9, "4.5G")],
)
def test_tokens_are_short(number: int, text: str):
    assert tokens(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (99_940, "99.9 KB"), (99_960, "100 KB"), (999_499, "999 KB"), (999_600, "1.0 MB"), (999_600_000, "1.0 GB"),
    ],
)  # fmt: skip
def test_a_size_that_is_rounded_up_takes_the_next_unit(number: int, text: str):
    assert size(number) == text


def test_sizes_are_short():
    assert [size(n) for n in (0, 999, 1000, 123456, 5_000_000, 7 * 10**9)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "123 KB",
        "5.0 MB",
        "7.0 GB",
    ]


@pytest.mark.parametrize(
    ("micros", "text"), [(1_234_567, "$1.23"), (12_345, "$0.012"), (4_500, "$0.0045"), (11, "$0.000011")]
)
def test_money_of_one_request(micros: int, text: str):
    assert money(micros) == text


def test_what_was_counted_and_what_was_used():
    assert [count(1, "entry", "entries"), count(1_200, "entry", "entries")] == ["1 entry", "1,200 entries"]
    assert used(Usage(input_tokens=300, cache_read_tokens=900, output_tokens=80)) == "1,200 tokens in, 80 out"
