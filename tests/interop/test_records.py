"""Lines and records of other programs' files: a damaged record costs only itself."""

from pathlib import Path

import zstandard

from turnlog.interop.jsonline import lines
from turnlog.interop.problem import Problem
from turnlog.interop.records import rows, typed_records


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
