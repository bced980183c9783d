"""The contract of a format, as tests that any format inherits."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

import turnlog
from turnlog import Home, Image, Message, Session, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.errors import AlreadyExists, TurnlogError
from turnlog.exchange.source import Imported, bring_all
from turnlog.exchange.transcript import render, transcript_of, writing_of
from turnlog.formats import Format, Jump, Problem, Source, Writing, added, every, format_of, names
from turnlog.session.interior import interior

_MUTATIONS = 40
_NEIGHBOURS = 12
_PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


class FormatContract:
    """Every promise of `turnlog.formats`. Inherit it in a class whose name begins with `Test`.

    `name` is the format's; `samples` are files or folders of that agent, each with sessions in it. `writes` is False
    for a format that is only read. `format` is the value itself, for one that does not come with Turnlog: there need be
    no installed package that names it.
    """

    name: ClassVar[str]
    format: ClassVar[Format | None] = None
    samples: ClassVar[list[Path]] = []
    writes: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if not cls.writes:
            for test in _OF_WRITING:
                setattr(cls, test, None)  # what is no function is not collected

    @pytest.fixture(autouse=True)
    def _in_use(self) -> Iterator[None]:
        assert self.samples, f"{self.name} has no samples"
        with added(self.name, self.format) if self.format is not None else nullcontext():
            yield

    @property
    def _form(self) -> Format:
        return format_of(self.name)

    @property
    def _writing(self) -> Writing:
        return writing_of(self._form, self.name)

    @pytest.fixture
    def home(self) -> Any:
        """A home of its own."""
        with turnlog.open("memory:") as home:
            yield home

    def _bring(self, home: Home, path: Path) -> list[Imported]:
        return list(bring_all(interior(home).creator, list(self._form.find(str(path)))))

    def _sources(self) -> list[Source]:
        return [source for sample in self.samples for source in self._form.find(str(sample))]

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def test_it_has_a_name_and_a_title(self) -> None:
        assert self.name in names()
        assert self._form.title

    def test_it_is_written_exactly_if_it_says_so(self) -> None:
        assert (self._form.write is not None) is self.writes

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
        assert list(self._form.find(str(tmp_path))) == []

    def test_reading_twice_gives_the_same(self) -> None:
        for source in self._sources():
            first, second = (self._form.read(source) for _ in range(2))
            assert [_plain(step) for step in first.steps] == [_plain(step) for step in second.steps]
            assert (first.header, first.facts, first.problems) == (second.header, second.facts, second.problems)

    def test_keys_name_one_record_each(self) -> None:
        for source in self._sources():
            keys = [step.key for step in self._form.read(source).steps if step.key is not None]
            assert len(keys) == len(set(keys)), source

    def test_a_move_names_a_record_that_came_before(self) -> None:
        for source in self._sources():
            seen = {""}
            for step in self._form.read(source).steps:
                if isinstance(step, Jump):
                    assert step.to in seen, source
                elif step.key is not None:
                    seen.add(step.key)

    def test_importing_twice_adds_nothing(self, home: Home) -> None:
        for sample in self.samples:
            for item in self._bring(home, sample):
                assert item.id, item.problems
        before = {row.id: row.seq for row in home.sessions()}
        assert [item.added for sample in self.samples for item in self._bring(home, sample)] == [0] * len(
            self._sources()
        )
        assert {row.id: row.seq for row in home.sessions()} == before

    def test_what_was_imported_makes_a_context(self, home: Home) -> None:
        for sample in self.samples:
            for item in self._bring(home, sample):
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
            target.write_bytes(_harmed(path.read_bytes(), chance))
            with turnlog.open("memory:") as home:
                for item in self._bring(home, copy):
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
            for source in self._form.find(str(copy)):
                if source.path != str(target):
                    list(self._form.read(source).steps)
            shutil.rmtree(copy.parent)

    def _with_neighbours(self) -> Iterator[tuple[Path, Path]]:
        """Some files of every sample that is a folder, the smaller ones first: they lie beside sessions."""
        for sample in self.samples:
            files = _files(sample) if sample.is_dir() else []
            yield from ((sample, path) for path in sorted(files, key=lambda path: path.stat().st_size)[:_NEIGHBOURS])

    # ── writing ───────────────────────────────────────────────────────────────────────────────────

    def test_writing_is_a_function_of_the_session(self, home: Home) -> None:
        with _talk(home) as session:
            first, second = (self._writing.render(transcript_of(session)) for _ in range(2))
        assert [output.path for output in first.files] == [output.path for output in second.files]
        assert [output.data for output in first.files] == [output.data for output in second.files]

    def test_a_session_of_ours_comes_back_as_it_was_said(self, home: Home, tmp_path: Path) -> None:
        with _talk(home) as session:
            written = render(session, self.name)
            self._writing.place(written, str(tmp_path / "there"))
            wanted = _said(session)
        brought = self._bring(home, tmp_path / "there")
        assert [item.problems for item in brought] == [[]]
        with home.resume(brought[0].id) as back:
            assert _said(back) == wanted

    def test_what_it_cannot_carry_is_told(self, home: Home) -> None:
        with _talk(home) as session:
            session.append(Message(role="user", blocks=[Image(media_type="image/png", data=_PNG), Text(text="see")]))
            session.note("only for people")
            written = render(session, self.name)
            assert all(loss.what and loss.count > 0 for loss in written.lost)

    def test_what_is_no_unicode_is_written_as_far_as_it_goes_and_told(self, home: Home, tmp_path: Path) -> None:
        """Bytes of a tool that are no text, in a folder whose name is none."""
        folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
        with home.create(workspace=folder) as session:
            session.user("go")
            call = ToolCall(id="call_1", name="cat", input={"path": "x"})
            session.append(Message(role="assistant", blocks=[call], model="claude-sonnet-4-5"))
            session.tool_result("call_1", "caf\udce9")
            session.append(Message(role="assistant", blocks=[Text(text="done")], model="claude-sonnet-4-5"))
            transcript = msgspec.structs.replace(transcript_of(session), workspace=folder)
            said = _said(session)
            written = self._writing.render(transcript)
        assert "bytes that are not Unicode" in [loss.what for loss in written.lost]
        self._writing.place(written, str(tmp_path / "there"))
        [item] = self._bring(home, tmp_path / "there")
        with home.resume(item.id) as back:
            assert _said(back) == said

    def test_nothing_is_overwritten_without_being_asked(self, home: Home, tmp_path: Path) -> None:
        with _talk(home) as session:
            written = render(session, self.name)
        place = self._writing.place
        path = Path(place(written, str(tmp_path)))
        path.write_bytes(b"mine")
        with pytest.raises(AlreadyExists):
            place(written, str(tmp_path))
        assert path.read_bytes() == b"mine"
        place(written, str(tmp_path), force=True)
        assert path.read_bytes() == written.files[0].data
        assert not [leftover for leftover in path.parent.iterdir() if leftover.name.endswith(".tmp")]

    @pytest.mark.parametrize("id", ["../../out", "/etc/x", "a\\b", "..", "a\0b", "long" * 200, "ünï/cødé"])
    def test_no_id_leads_out_of_the_folder(self, home: Home, tmp_path: Path, id: str) -> None:
        folder = tmp_path / "deep" / "er"
        folder.mkdir(parents=True)
        with home.create(id=id, workspace=str(tmp_path)) as session:
            session.user("hi")
            written = render(session, self.name)
        try:
            path = Path(self._writing.place(written, str(folder)))
        except TurnlogError:
            assert list(folder.rglob("*.json*")) == []
        else:
            assert path.is_relative_to(folder)
        assert [path for path in tmp_path.iterdir() if path.name != "deep"] == []


_OF_WRITING = (
    "test_writing_is_a_function_of_the_session",
    "test_a_session_of_ours_comes_back_as_it_was_said",
    "test_what_it_cannot_carry_is_told",
    "test_what_is_no_unicode_is_written_as_far_as_it_goes_and_told",
    "test_nothing_is_overwritten_without_being_asked",
    "test_no_id_leads_out_of_the_folder",
)


def _talk(home: Home) -> Session:
    """A session with what every agent knows: texts, thinking, calls, a failure, usage, odd characters."""
    session = home.create(workspace="/home/anna/проект", title="a talk")
    session.user("създай файл 🚀 «naïve»\nline two\u2028still")
    call = ToolCall(id="call_1", name="write", input={"path": "план.txt", "n": 3, "deep": {"a": [1, None, True]}})
    answer: list[Any] = [Thinking(text="hm", provider="nobody"), Text(text="I write."), call]
    spent = Usage(input_tokens=10, output_tokens=5)
    session.append(Message(role="assistant", model="claude-sonnet-4-5", usage=spent, blocks=answer))
    session.append(Message(role="tool", blocks=[ToolResult(call="call_1", name="write", content="done\t\x7f ok")]))
    more = ToolCall(id="call_2", name="bash", input={"command": "cat none"})
    session.append(Message(role="assistant", blocks=[more], model="claude-sonnet-4-5"))
    session.append(Message(role="tool", blocks=[ToolResult(call="call_2", name="bash", content="no", is_error=True)]))
    session.append(Message(role="assistant", blocks=[Text(text="Готово ✅")], model="claude-sonnet-4-5"))
    session.user("още")
    session.append(Message(role="assistant", blocks=[Text(text="да")], model="claude-sonnet-4-5"))
    return session


def _said(session: Session) -> list[tuple[str, str]]:
    """Who said what, and what was called with which answer; reasoning of other providers stays at home."""
    texts: list[tuple[str, str]] = []
    for message in session.messages():
        for block in message.blocks:
            if isinstance(block, Text):
                texts.append((message.role, block.text))
            elif isinstance(block, ToolCall):
                texts.append(("call", f"{block.name} {msgspec.json.encode(block.input, order='sorted').decode()}"))
            elif isinstance(block, ToolResult):
                text = (
                    block.content
                    if isinstance(block.content, str)
                    else "".join(part.text for part in block.content if isinstance(part, Text))
                )
                texts.append(("result", text))
    return texts


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


def _harmed(data: bytes, chance: random.Random) -> bytes:
    """The same bytes after one of the accidents that happen in the field."""
    if not data:
        return b"\0"
    at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    kind = chance.randrange(8)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + b"\0" * chance.randrange(1, 3000) + data[at:]
    if kind == 2:
        return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
    if kind == 3:
        return data[:at] + data[end:]
    if kind == 4:
        return data[:end] + data[at:]
    if kind == 5:
        return (
            data[:at]
            + chance.choice([b"[" * 5000, b'{"a":' * 3000, b"1e999", b"\xff\xfe", b"\\ud800", b"}{"])
            + data[at:]
        )
    if kind == 6:
        lines = data.split(b"\n")
        chance.shuffle(lines)
        return b"\n".join(lines)
    return data.replace(b'":"', b'":7,"', 1).replace(b"null", b"[]", 3).replace(b"true", b'{"x":1}', 2)
