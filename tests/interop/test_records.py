"""Lines and records of other programs' files: a damaged record costs only itself."""

from pathlib import Path

import zstandard

from turnlog.interop.jsonline import lines
from turnlog.interop.problem import Problem
from turnlog.interop.records import objects_in, rows, typed_records


def test_a_record_behind_a_torn_one_is_found_by_any_of_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b'{"role":"user","content":"hal{"role": "assistant","content":"second"}\n{"role":"user"}\n')
    problems: list[Problem] = []
    assert [row.data.get("content") for row in rows(str(path), problems, marks=("role",))] == ["second", None]
    assert [problem.what for problem in problems] == ["a damaged line, in which 1 record could be read"]


def test_a_compressed_file_is_read_from_an_offset_too(tmp_path: Path) -> None:
    content = b'{"a":1}\n{"a":2}\n{"a":3}\n'
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.zst"
    plain.write_bytes(content)
    packed.write_bytes(zstandard.ZstdCompressor().compress(content))
    for start in (0, 8, len(content), len(content) + 5):
        assert list(lines(str(packed), start=start)) == list(lines(str(plain), start=start))
        assert list(typed_records(str(packed), [], start=start)) == list(typed_records(str(plain), [], start=start))


def test_an_object_inside_a_line_that_is_being_written_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "growing.jsonl"
    whole = b'{"type":"message","content":[{"type":"text","text":"hello"}],"id":"m"}\n'
    for end in range(1, len(whole) - 1):
        path.write_bytes(whole[:end])
        problems: list[Problem] = []
        assert list(rows(str(path), problems)) == []
        assert [problem.what for problem in problems] == ["a damaged line"]
    path.write_bytes(b'{"type":"mess' + whole[:-1])
    assert [row.data["id"] for row in rows(str(path), [])] == ["m"]


def test_what_is_no_object_in_a_list_of_objects_is_reported() -> None:
    problems: list[Problem] = []
    assert objects_in(None, "calls", problems) == []
    assert objects_in([{"a": 1}], "calls", problems) == [{"a": 1}]
    assert problems == []
    assert objects_in([5, {"a": 1}, None], "calls", problems, offset=7) == [{"a": 1}]
    assert objects_in("text", "messages", problems) == []
    assert [(problem.what.partition(" that")[0], problem.offset) for problem in problems] == [
        ("calls", 7), ("messages", None),
    ]  # fmt: skip
