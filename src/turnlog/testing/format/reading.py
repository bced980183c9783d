"""What a format promises of reading."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import turnlog
from turnlog import Home, Message
from turnlog.formats import Jump, Problem, every, names
from turnlog.testing.format.accident import damaged
from turnlog.testing.format.fixture import FormatTests
from turnlog.testing.format.openedpath import opened_paths

_MUTATIONS = 40
_NEIGHBOURS = 12


class ReadingTests(FormatTests):
    """Finding and reading sessions."""

    def test_it_has_a_name_and_a_title(self) -> None:
        assert self.name in names()
        assert self.form.title

    def test_it_is_written_exactly_if_it_says_so(self) -> None:
        assert (self.form.write is not None) is self.writes

    def test_every_sample_is_found_and_by_no_other_format(self) -> None:
        for sample in self.samples:
            by_format = {name: list(form.find(str(sample))) for name, form in every()}
            assert by_format[self.name], sample
            assert [name for name, sources in by_format.items() if sources] == [self.name], sample
            assert {source.agent for source in by_format[self.name]} == {self.name}, sample

    def test_nothing_is_found_where_there_is_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "x.jsonl").write_bytes(b"")
        (tmp_path / "x.json").write_bytes(b"\x00\xff not json")
        (tmp_path / "y.jsonl").write_bytes(b'[1,2]\n"text"\n{}\n{"type":"?"}\n')
        (tmp_path / "z.json").write_bytes(b'{"messages":1,"id":[],"sessionId":{}}')
        assert list(self.form.find(str(tmp_path))) == []

    def test_reading_twice_gives_the_same(self) -> None:
        for source in self.sources():
            first, second = (self.form.read(source) for _ in range(2))
            assert [_plain(step) for step in first.steps] == [_plain(step) for step in second.steps]
            assert (first.header, first.facts, first.problems) == (second.header, second.facts, second.problems)

    def test_keys_name_one_record_each(self) -> None:
        for source in self.sources():
            keys = [step.key for step in self.form.read(source).steps if step.key is not None]
            assert len(keys) == len(set(keys)), source

    def test_a_move_names_a_record_that_came_before(self) -> None:
        for source in self.sources():
            seen = {""}
            for step in self.form.read(source).steps:
                if isinstance(step, Jump):
                    assert step.to in seen, source
                elif step.key is not None:
                    seen.add(step.key)

    def test_every_file_that_is_read_is_watched(self, tmp_path: Path) -> None:
        """The catalog looks again at the file of a session and at its sidecars."""
        watch = self.form.watch
        if not watch.by_file:
            pytest.skip("the catalog looks at whatever lies beside these sessions")
        for number, sample in enumerate(self.samples):
            copy = tmp_path / f"{number}" / sample.name
            copy.parent.mkdir()
            shutil.copytree(sample, copy) if sample.is_dir() else shutil.copy(sample, copy)
            sources = list(self.form.find(str(copy)))
            for source in sources:
                watched = {source.path, f"{source.path}-wal", *(other.path for other in sources)}
                watched |= set(watch.sidecars(source) if watch.sidecars is not None else ())
                with opened_paths() as paths:
                    list(self.form.read(source).steps)
                assert {path for path in paths if path.startswith(f"{copy.parent}/")} <= watched, source

    def test_a_stamp_stands_for_each_session_of_a_database(self) -> None:
        if (stamps := self.form.watch.stamps) is None:
            pytest.skip("there is one session in each file")
        sources = self.sources()
        for path in {source.path for source in sources if source.key}:
            by_key = stamps(path)  # none for a file that is no database
            assert not by_key or by_key.keys() == {source.key for source in sources if source.path == path}, path
            assert by_key == stamps(path), path

    def test_going_on_from_a_mark_gives_what_reading_all_of_it_gives(self) -> None:
        if (growth := self.form.growth) is None:
            pytest.skip("all of it is read each time")
        for source in self.sources():
            whole = self.form.read(source)
            steps = [_plain(step) for step in whole.steps]
            if whole.mark is None:
                continue
            kept = msgspec.json.decode(msgspec.json.encode(whole.mark), type=type(whole.mark))
            if (more := growth(source, kept)) is not None:
                assert [_plain(step) for step in more.steps] == steps[kept.steps :], source
                assert (more.header, more.mark, more.totals) == (whole.header, whole.mark, whole.totals), source

    def test_importing_twice_adds_nothing(self, home: Home) -> None:
        for sample in self.samples:
            for item in self.import_sessions(home, sample):
                assert item.id, item.problems
        before = {row.id: row.seq for row in home.sessions()}
        assert [item.added for sample in self.samples for item in self.import_sessions(home, sample)] == [0] * len(
            self.sources()
        )
        assert {row.id: row.seq for row in home.sessions()} == before

    def test_what_was_imported_makes_a_context(self, home: Home) -> None:
        for sample in self.samples:
            for item in self.import_sessions(home, sample):
                with home.resume(item.id) as session:
                    session.context()
                    assert session.damage == []

    def test_damage_costs_records_and_never_raises(self, tmp_path: Path) -> None:
        chance = random.Random(7)
        files = [path for sample in self.samples for path in _files(sample) if path.stat().st_size < 300_000]
        for number in range(_MUTATIONS):
            path = files[number % len(files)]
            root = next(sample for sample in self.samples if path == sample or sample in path.parents)
            copy = tmp_path / f"{number}" / root.name
            copy.parent.mkdir()
            shutil.copytree(root, copy) if root.is_dir() else shutil.copy(root, copy)
            target = copy if root == path else copy / path.relative_to(root)
            target.write_bytes(damaged(path.read_bytes(), chance))
            with turnlog.open("memory:") as home:
                for item in self.import_sessions(home, copy):
                    assert all(isinstance(problem, Problem) for problem in item.problems)
            shutil.rmtree(copy.parent)

    @pytest.mark.parametrize("instead", ["a folder", "a link to itself", "bytes"])
    def test_what_cannot_be_opened_costs_no_session_but_its_own(self, tmp_path: Path, instead: str) -> None:
        for number, (root, path) in enumerate(self._with_neighbours()):
            copy = tmp_path / f"{number}" / root.name
            shutil.copytree(root, copy, symlinks=True)
            target = copy / path.relative_to(root)
            target.unlink()
            if instead == "a folder":
                target.mkdir()
            elif instead == "a link to itself":
                target.symlink_to(target)
            else:
                target.write_bytes(b"\xff\xfe\x00 no text")
            for source in self.form.find(str(copy)):
                if source.path != str(target):
                    list(self.form.read(source).steps)
            shutil.rmtree(copy.parent)

    def _with_neighbours(self) -> Iterator[tuple[Path, Path]]:
        """Some files of every sample that is a folder, the smaller ones first: they lie beside sessions."""
        for sample in self.samples:
            files = _files(sample) if sample.is_dir() else []
            yield from ((sample, path) for path in sorted(files, key=lambda path: path.stat().st_size)[:_NEIGHBOURS])


def _plain(step: Any) -> Any:
    """A step without the ids that drafts get when they are made."""
    if isinstance(step, Jump):
        return step
    entry = msgspec.structs.replace(step.entry, id="")
    if hasattr(entry, "replacement"):
        inner = [msgspec.structs.replace(m, id="") if isinstance(m, Message) else m for m in entry.replacement]
        entry = msgspec.structs.replace(entry, replacement=inner)
    return step.key, step.names, entry


def _files(sample: Path) -> list[Path]:
    return [sample] if sample.is_file() else sorted(path for path in sample.rglob("*") if path.is_file())
