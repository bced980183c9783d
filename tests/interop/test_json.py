"""Foreign JSON: refused as a whole where it is not right, and read as far as it goes where that is asked for."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.interop.json import MAX_DEPTH, decode
from turnlog.interop.jsonline import JsonLine, document, lines
from turnlog.interop.salvage import salvage

WHOLE = '{"id": "s", "list": [1, -2.5e3, true, null, "а\\n\\ud83d\\ude80"], "inner": {"k": {}, "e": []}}'.encode()


def test_a_whole_document_is_read() -> None:
    assert decode(WHOLE) == json.loads(WHOLE)
    assert decode(b' {"a":1,"a":2} ') == {"a": 2}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b'{"a":1}x', b"NaN", b"Infinity", b"1e999", b'"\\ud800"', b'"\\udc00x"', b'"\xff"', b'"\x00"',
        b"\xef\xbb\xbf1", b"[1,]", b"01", b"'a'", b"\x00\x00\x00", b"[" * 500_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), b'{"a":' * 300 + b"1" + b"}" * 300,
    ],
)  # fmt: skip
def test_what_is_not_strictly_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


def test_nesting_is_allowed_up_to_the_limit_and_brackets_in_text_do_not_count() -> None:
    assert decode(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert decode(b'["' + b"[" * 1000 + b'"]') == ["[" * 1000]


def test_a_whole_document_needs_no_salvage() -> None:
    assert salvage(WHOLE) == (json.loads(WHOLE), [])


@pytest.mark.parametrize(
    ("data", "value", "what"),
    [
        (b'{"a": [1, 2, {"b": "c", "d": "to', {"a": [1, 2, {"b": "c"}]}, "the JSON breaks off"),
        (b'{"a": [1, 2', {"a": [1]}, "the JSON breaks off"),
        (b'{"a": tr', {}, "the JSON breaks off"),
        (b'["a", "b"', ["a", "b"], "the JSON breaks off"),
        (b'{"a": {"b": "c"}, "d": "e\\"', {"a": {"b": "c"}}, "the JSON breaks off"),
        (b'{"a": {"b": "[{,"', {"a": {"b": "[{,"}}, "the JSON breaks off"),
        (b'{"a": "b\\', {}, "the JSON breaks off"),
        (b'{"a": "b", ', {"a": "b"}, "the JSON breaks off"),
        (b'{"a": "b", "c"', {"a": "b"}, "the JSON breaks off"),
        (b'{"a": "b", "c":', {"a": "b"}, "the JSON breaks off"),
        (b'{"a": 1 "b": 2}', {"a": 1}, "what follows is not JSON"),
        (b'{"a": 1}\x00\x00\x00', {"a": 1}, "what follows is not JSON"),
        (b'{"a": 1, "b": trou}', {"a": 1}, "what follows is not JSON"),
        (b"[1, 2]]", [1, 2], "what follows is not JSON"),
        (b"", None, "the JSON breaks off"),
        (b"\x00" * 100, None, "what follows is not JSON"),
        (b'"half', None, "the JSON breaks off"),
    ],
)
def test_a_torn_document_keeps_every_value_that_was_complete(data: bytes, value: Any, what: str) -> None:
    found, problems = salvage(data)
    assert found == value
    assert [problem.what for problem in problems] == [what]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": "x\xff\xfey", "b": 1}', {"a": "x\ufffd\ufffdy", "b": 1}),
        (b'{"a": "\\ud800", "b": 1}', {"a": "\ufffd", "b": 1}),
        (b'{"a": "x\ny\\q\\u00zz", "b": "\\ud83d\\ude80\\t"}', {"a": "x\ny\\q\\u00zz", "b": "🚀\t"}),
        (b'{"a": 1e999, "b": 1}', {"a": None, "b": 1}),
        (b'{"a": [1, 2,], "b": 1}', {"a": [1, 2], "b": 1}),
        (b'{"a": ' + b"[" * 250 + b"]" * 250 + b', "b": 1}', 1),
        (b'\xef\xbb\xbf{"b": 1}', {"b": 1}),
    ],
)
def test_a_flaw_inside_a_value_costs_only_that_value(data: bytes, value: Any) -> None:
    found, problems = salvage(data)
    assert (found if isinstance(value, dict) else found["b"]) == value
    assert len(problems) == (0 if data.startswith(b"\xef") else 1)


def test_a_problem_says_where() -> None:
    _, problems = salvage(b'{"a": "\xff", "b": "tor')
    assert [(problem.offset, problem.length) for problem in problems] == [(6, None), (9, 11)]


def test_a_flood_of_brackets_or_flaws_is_bounded() -> None:
    value, problems = salvage(b"[" * 3_000_000)
    assert value is not None and len(problems) == 2
    value, problems = salvage(b"[" + b'"\xff",' * 10_000)
    assert len(value) == 10_000 and len(problems) < 100


@given(st.integers(0, len(WHOLE)))
def test_every_cut_of_a_document_gives_a_part_of_it(cut: int) -> None:
    found, problems = salvage(WHOLE[:cut])
    assert bool(problems) == (cut < len(WHOLE))
    assert is_part(found, json.loads(WHOLE))


def is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(key in whole and is_part(item, whole[key]) for key, item in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(is_part(a, b) for a, b in zip(part, whole, strict=False))
    return part is None or part == whole


def test_no_damage_whatever_makes_salvage_raise() -> None:
    dice = random.Random(7)
    for _ in range(3000):
        data = bytearray(WHOLE)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            data[at : at + dice.randrange(3)] = dice.choice(
                (b"", b"\x00" * 8, b'"', b"\\", b"[", b"}", b"\xff", b"\\ud800")
            )
        value, _ = salvage(bytes(data))
        json.dumps(value, ensure_ascii=False).encode()


def test_lines_end_at_newlines_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes("a\r\n\n\u2028b\x85\x0c\nlast".encode())
    assert list(lines(str(path))) == [
        JsonLine(0, 2, b"a\r"),
        JsonLine(3, 0, b""),
        JsonLine(4, 7, "\u2028b\x85\x0c".encode()),
        JsonLine(12, 4, b"last", False),
    ]
    path.write_bytes(b"")
    assert list(lines(str(path))) == []


def test_a_line_over_the_limit_is_a_problem_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 10 + b"\n" + b"y" * 11 + b"\n" + b"z\n" + b"w" * 30)
    first, second, third, last = lines(str(path), limit=10)
    assert (first.data, third.data, third.offset) == (b"x" * 10, b"z", 23)
    assert (second.data, second.offset, second.length, second.is_ended) == (b"", 11, 11, True)
    assert second.problem is not None and second.problem.what == "a line of 11 bytes, more than 10"
    assert (last.length, last.is_ended, last.problem is not None) == (30, False, True)


def test_a_document_over_the_limit_is_cut_with_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"0123456789")
    assert document(str(path), limit=10) == (b"0123456789", [])
    data, problems = document(str(path), limit=4)
    assert data == b"0123" and problems[0].offset == 4


@pytest.mark.parametrize("inner", ["[", '{"a":'])
@pytest.mark.parametrize("more", [1, 2, 5])
def test_what_is_nested_too_deeply_costs_only_itself(inner: str, more: int) -> None:
    close = "]" if inner == "[" else "}"
    deep = inner * (MAX_DEPTH - 1 + more) + f"{inner}1{close}" + close * (MAX_DEPTH - 1 + more)
    value, problems = salvage(f'{{"before": 1, "deep": {deep}, "after": 2}}'.encode())
    assert (value["before"], value["after"]) == (1, 2)
    assert [problem.what for problem in problems] == [f"nested more than {MAX_DEPTH} levels deep: left out"]


def test_several_values_below_the_limit_are_left_out_together() -> None:
    deep = "[" * (MAX_DEPTH + 2) + "[1],[2]" + "]" * (MAX_DEPTH + 2)
    value, problems = salvage(f'[{deep}, "after"]'.encode())
    assert value[1] == "after" and len(problems) == 1
