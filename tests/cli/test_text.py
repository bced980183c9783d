"""Untrusted text: nothing in it may steer a terminal."""

import re
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from turnlog import Text, ToolCall
from turnlog.cli.draw.table import table
from turnlog.cli.frame.notes import tell, warn
from turnlog.view.visible import clip, one_line, safe, width

EVIL = "a\x1b[31mred\x1b]0;owned\x07\x9b2J\x7f\x00\r\b\u202egpj.exe\u2066\u200f\u2028b"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x200F, 0x2028, 0xD800, 0xDFFF])
def test_every_unsafe_character_is_escaped(code: int):
    shown = safe(f"a{chr(code)}b")
    assert shown == f"a{chr(code)}b" if chr(code) in "\t\n" else not UNSAFE.search(shown)
    assert shown.startswith("a")
    assert "\n" not in one_line(f"a{chr(code)}b")


def test_ordinary_text_stays_as_it_is():
    text = "Grüße, 你好, مرحبا, 👩‍💻, e\u0301, → ✓"
    assert safe(text) == one_line(text) == text


def test_no_command_lets_it_through(cli: Cli, folder: Path):
    with turnlog.open() as home:
        session = home.create(title=EVIL, agent=EVIL, workspace=f"/tmp/{EVIL.replace(chr(0), '')}", id=f"id-{EVIL}")
        session.user(EVIL)
        session.assistant(
            [Text(EVIL), ToolCall(id=EVIL, name=EVIL, input={EVIL: EVIL})], model=EVIL, agent=EVIL, error={EVIL: EVIL}
        )
        session.tool_result(EVIL, EVIL)
        session.assistant([ToolCall(id=EVIL, name=EVIL, input=EVIL)])
        session.append(turnlog.Custom(kind=EVIL, data=EVIL), turnlog.Note(text=EVIL))
        session.set(EVIL, EVIL)
        session.fork(name=EVIL)
        name = session.id
    path = next((folder / "sessions").iterdir())
    path.write_bytes(path.read_bytes() + EVIL.encode())
    for words in (["ls", "--all"], ["show", name], ["show", name, "--full"], ["log", name], ["doctor"], ["show", EVIL]):
        done = cli(*words)
        assert done.out or done.err
        assert not UNSAFE.search(done.out), words
        assert not UNSAFE.search(done.err), words


def test_json_has_the_text_itself(cli: Cli, folder: Path):
    with turnlog.open() as home:
        home.create(title=EVIL).user(EVIL)
    assert cli("ls", "--all", "--json").json["sessions"][0]["title"] == EVIL
    assert cli("show", "--json").json["messages"][0]["blocks"][0]["text"] == EVIL
    assert cli("log", "--kind", "message", "--json").json["entries"][0]["blocks"][0]["text"] == EVIL


def test_wide_and_narrow_characters_are_counted():
    assert [width(text) for text in ("abc", "你好", "e\u0301", "👩‍💻")] == [3, 4, 1, 2]
    assert clip("abcdef", 4) == "abc…"
    assert clip("你好你好", 5) == "你好…"
    assert clip("abc", 3) == "abc"


def test_tables_align():
    assert table(("A", "N"), [("你好", "1"), ("x", "22")], right=(1,)) == ["A      N", "你好   1", "x     22"]


def test_what_is_said_on_stderr_is_made_safe(capsys: pytest.CaptureFixture[str]):
    warn("a\x1b[2J  b\nc")
    tell("/a  b\x1b", exact=True)  # blanks of a path stay
    assert capsys.readouterr().err == "warning: a\\x1b[2J b c\n/a  b\\x1b\n"


def test_a_note_with_wide_characters_is_broken_where_the_screen_ends():
    text = (
        "有些会话读不出来 " * 12
        + "`turnlog doctor 12345678 --repair-with-a-very-long-option-name-that-is-typed-or-copied-as-it-stands-here` ok"
    )
    with Terminal("-c", f"from turnlog.cli.frame.notes import tell; tell({text!r})", columns=60) as terminal:
        assert terminal.end() == 0
    lines = terminal.text.splitlines()
    assert " ".join(lines) == text
    long = [line for line in lines if width(line) > 60]
    assert [line.count("`") for line in long] == [2]  # a command that is copied is not broken
    assert max(width(line) for line in lines if line not in long) >= 50


def test_a_suggested_command_means_the_session_and_nothing_else(cli: Cli, folder: Path):
    """Ids come from other machines and programs, and suggestions are pasted into a shell."""
    id = "x; touch it"
    with turnlog.open() as home:
        session = home.create(id=id, workspace=".")
        for text in ("one", "two", "three"):
            session.user(text)
            session.assistant(f"{text}!")
        session.rewind(turns=1)
        session.user("another")
    for words in (
        ["show", id],
        ["compact", id, "--keep", "1"],
        ["uncompact", id],
        ["rm", id],
    ):
        done = cli(*words)
        suggested = [part for part in re.findall("`(turnlog [^`]*)`", done.out + done.err) if "touch" in part]
        assert suggested, words
        assert all("'x; touch it'" in command for command in suggested), words
