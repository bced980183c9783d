"""qwen-code: what has the wrong type is kept or reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import turnlog
from tests.formats.composing import bring, lines, talk, what
from turnlog import Note, UnknownBlock

ABOUT = {"sessionId": "s", "cwd": "/p", "timestamp": "2026-01-01T00:00:00.000Z"}


def record(uuid: str, parent: str | None, kind: str, **more: Any) -> dict[str, Any]:
    return {**ABOUT, "uuid": uuid, "parentUuid": parent, "type": kind, **more}


def said(uuid: str, parent: str | None, *parts: Any) -> dict[str, Any]:
    return record(uuid, parent, "user", message={"role": "user", "parts": list(parts)})


def only(path: Path, *records: dict[str, Any]) -> tuple[Any, Any]:
    [found] = bring("qwen-code", lines(path, [said("u", None, {"text": "hi"}), *records]))
    return found


def test_a_system_record_is_kept_whatever_its_payload_is(tmp_path: Path) -> None:
    odd = record("x", "u", "system", subtype="new_thing", systemPayload="a text")
    _, session = only(tmp_path / "s.jsonl", odd)
    [note] = [entry for entry in session.entries() if isinstance(entry, Note)]
    assert (note.text, note.data) == ("new thing", "a text")


def test_a_title_that_changes_behind_a_rewind_is_the_title(tmp_path: Path) -> None:
    def titled(uuid: str, parent: str, title: str) -> dict[str, Any]:
        return record(uuid, parent, "system", subtype="custom_title", systemPayload={"customTitle": title})

    first = [titled("t", "u", "one"), record("a", "t", "assistant", message={"parts": [{"text": "yes"}]})]
    back = record("r", "u", "system", subtype="rewind", systemPayload={"x": 1})
    later = [back, said("v", "r", {"text": "on"}), titled("w", "v", "two")]
    with turnlog.open("memory:") as home:
        for records in (first, [*first, *later]):
            path = lines(tmp_path / "s.jsonl", [said("u", None, {"text": "hi"}), *records])
            [(_, session)] = bring("qwen-code", path, home)
        assert session.title == "two"


def test_a_message_that_is_no_object_is_reported(tmp_path: Path) -> None:
    item, _ = only(tmp_path / "s.jsonl", record("x", "u", "user", message="a text"))
    assert "a message that is no object" in what(item.problems)


def test_a_part_that_is_no_object_is_kept(tmp_path: Path) -> None:
    _, session = only(tmp_path / "s.jsonl", said("x", "u", 7, {"text": "on"}))
    assert talk(session.context()) == ["user: hi", "user: on"]
    assert isinstance(session.context()[-1].blocks[0], UnknownBlock)


def test_what_is_no_message_in_a_summary_is_reported(tmp_path: Path) -> None:
    history = [5, {"role": "user", "parts": [{"text": "in short"}]}]
    payload = {"compressedHistory": history}
    item, session = only(
        tmp_path / "s.jsonl", record("x", "u", "system", subtype="chat_compression", systemPayload=payload)
    )
    assert "messages of a summary" in what(item.problems)
    assert talk(session.context()) == ["user: in short"]
