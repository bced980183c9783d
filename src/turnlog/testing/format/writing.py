"""What a format promises of writing, for formats that are written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnlog import Home, Image, Message, Session, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.errors import AlreadyExists, TurnlogError
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import render
from turnlog.testing.build import PNG
from turnlog.testing.format.fixture import FormatTests


class WritingTests(FormatTests):
    """Writing sessions of ours."""

    def test_writing_is_a_function_of_the_session(self, home: Home) -> None:
        with sample_conversation(home) as session:
            first, second = (self.writing.render(transcript_of(session)) for _ in range(2))
        assert [output.path for output in first.files] == [output.path for output in second.files]
        assert [output.data for output in first.files] == [output.data for output in second.files]

    def test_a_session_of_ours_comes_back_as_it_was_said(self, home: Home, tmp_path: Path) -> None:
        with sample_conversation(home) as session:
            written = render(session, self.name)
            self.writing.place(written, str(tmp_path / "there"))
            wanted = visible_parts(session)
        brought = self.import_sessions(home, tmp_path / "there")
        assert [item.problems for item in brought] == [[]]
        with home.resume(brought[0].id) as back:
            assert visible_parts(back) == wanted

    def test_what_it_cannot_carry_is_told(self, home: Home) -> None:
        with sample_conversation(home) as session:
            session.append(Message(role="user", blocks=[Image(media_type="image/png", data=PNG), Text(text="see")]))
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
            parts = visible_parts(session)
            written = self.writing.render(transcript)
        assert "bytes that are not Unicode" in [loss.what for loss in written.lost]
        self.writing.place(written, str(tmp_path / "there"))
        [item] = self.import_sessions(home, tmp_path / "there")
        with home.resume(item.id) as back:
            assert visible_parts(back) == parts

    def test_nothing_is_overwritten_without_being_asked(self, home: Home, tmp_path: Path) -> None:
        with sample_conversation(home) as session:
            written = render(session, self.name)
        place = self.writing.place
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
            path = Path(self.writing.place(written, str(folder)))
        except TurnlogError:
            assert list(folder.rglob("*.json*")) == []
        else:
            assert path.is_relative_to(folder)
        assert [path for path in tmp_path.iterdir() if path.name != "deep"] == []


def sample_conversation(home: Home) -> Session:
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


def visible_parts(session: Session) -> list[tuple[str, str]]:
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
