"""JSON as Rust programs write it, against what those programs were seen to write."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.interop.rust import F32, by_key, claw, compact, fnv1a64, number, pretty


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-1.5, "-1.5"), (0.1, "0.1"), (100.0, "100.0"),
        (0.079887, "0.079887"),
        (1e15, "1000000000000000.0"), (123456789012345.6, "123456789012345.6"),
        (9007199254740993.0, "9007199254740992.0"),
        (1e16, "1e16"), (1.5e300, "1.5e300"), (-2.5e-7, "-2.5e-7"), (1e-5, "0.00001"), (1.5e-5, "0.000015"),
        (9e-6, "9e-6"),
        (1e-6, "1e-6"), (5e-324, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e308"),
        (float("nan"), "null"), (float("inf"), "null"), (float("-inf"), "null"),
    ],
)  # fmt: skip
def test_floats_of_64_bits_have_the_shortest_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.8, "0.8"), (0.800000011920929, "0.8"), (0.0, "0.0"), (-0.25, "-0.25"), (42.5, "42.5"),
        (16777216.0, "16777216.0"),
        (1e12, "1000000000000.0"), (1e13, "1e13"), (1e-6, "0.000001"), (1e-7, "1e-7"), (3.4028235e38, "3.4028235e38"),
        (1e-45, "1e-45"), (1e39, "null"), (float("nan"), "null"),
    ],
)  # fmt: skip
def test_floats_of_32_bits_need_fewer_digits(value: float, text: str) -> None:
    assert number(F32(value)) == text


def test_newer_serde_writes_a_plus_into_great_exponents_only() -> None:
    assert compact([1e16, 1e-7, 1.0], plus=True) == b"[1e+16,1e-7,1.0]"
    assert pretty({"a": 2.5e20}, plus=True) == b'{\n  "a": 2.5e+20\n}'
    assert compact([1e16]) == b"[1e16]"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back_as_itself(value: float) -> None:
    for text in (number(value), number(value, plus=True)):
        assert struct.pack("<d", json.loads(text)) == struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_every_short_float_reads_back_as_itself(value: float) -> None:
    text = number(F32(value))
    assert struct.pack("<f", json.loads(text)) == struct.pack("<f", value)
    assert len(digits(text)) <= min(9, len(digits(number(value))))


def digits(text: str) -> str:
    return text.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_all_but_floats_is_what_pythons_json_writes(value: Any) -> None:
    assert pretty(value) == json.dumps(value, ensure_ascii=False, indent=2).encode()
    assert compact(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_only_what_must_be_escaped_is() -> None:
    text = '"\\/<\b\f\n\r\t\x00\x1f\x7f\x85\u2028é🚀'
    assert compact(text) == '"\\"\\\\/<\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\x85\u2028é🚀"'.encode()
    assert claw(text) == '"\\"\\\\/<\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u0085\u2028é🚀"'.encode()


def test_text_that_is_not_unicode_becomes_a_replacement_character() -> None:
    assert compact(["a\ud800b"]) == '["a\ufffdb"]'.encode()


def test_claw_sorts_every_object() -> None:
    assert claw({"b": 1, "a": [{"d": 0, "c": True}], "é": None}) == '{"a":[{"c":true,"d":0}],"b":1,"é":null}'.encode()


def test_empty_containers_stay_on_the_line() -> None:
    assert pretty({"a": [], "b": {}, "c": [[]]}) == b'{\n  "a": [],\n  "b": {},\n  "c": [\n    []\n  ]\n}'


def test_free_json_is_sorted_by_the_bytes_of_its_keys() -> None:
    keys = ["z", "é", "🚀", "\uffff", "A", "a", ""]
    ordered = list(by_key(dict.fromkeys(keys)))
    assert ordered == sorted(keys, key=str.encode)
    assert compact(by_key({"b": [{"y": 1, "x": 2}], "a": 0})) == b'{"a":0,"b":[{"x":2,"y":1}]}'


def test_integers_beyond_64_bits_are_floats_in_free_json() -> None:
    values = [2**64 - 1, -(2**63), 2**64, -(2**63) - 1, 10**400, True]
    assert compact(by_key(values)) == b"[18446744073709551615,-9223372036854775808,1.8446744073709552e19,-9.223372036854776e18,null,true]"  # noqa: E501  # fmt: skip


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes is not JSON"):
        compact({"a": b""})


def test_the_hash_that_names_folders() -> None:
    assert fnv1a64(b"") == 0xCBF29CE484222325
    assert fnv1a64(b"a") == 0xAF63DC4C8601EC8C
    assert f"{fnv1a64('/home/anna/проект 🚀'.encode()):016x}" == "a95db841bd411fbc"
