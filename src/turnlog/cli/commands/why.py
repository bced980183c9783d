"""`turnlog why`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from turnlog.blame.authorship import BlamedLine, LineAuthor
from turnlog.cli.draw.authorship import IN_WORDS, blamed_lines, session_name
from turnlog.cli.draw.change import diff_lines
from turnlog.cli.fields.authorship import AUTHOR, LINE, json_author, json_line
from turnlog.cli.fields.change import CHANGE, json_change
from turnlog.cli.frame.command import Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.frame.terminal import coloured
from turnlog.cli.safetynet.fileline import ask_after_catching_up, file_and_lines
from turnlog.errors import TurnlogError
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.reader.place import turns_of
from turnlog.session import Home
from turnlog.view.time import local_minute
from turnlog.view.visible import one_line, quoted, safe
from turnlog.workspace.diff import Difference

GROUP = "Safety net", 11
CHANGES = shape.NOTHING
FIELDS = {
    "line": shape.one("as in `turnlog blame`", LINE),
    "turns": shape.items(
        "the turn that wrote it, or those that may have",
        {
            **AUTHOR,
            "asked": shape.text("the whole prompt", null=True),
            "answer": shape.text("the last answer of the turn", null=True),
            "changes": shape.each("as in `turnlog diff`", CHANGE),
        },
    ),
}


@declare(Argument("file", "FILE:LINE", kind="file"))
def command(file: str, as_json: bool) -> None:
    """Show the prompt, answer and diff of the turn that wrote a line.

    If no turn wrote it, it shows what is known instead. `turnlog blame` shows all lines of a file.

    \b
    turnlog why src/main.py:12
    """
    name, lines = file_and_lines(file, None)
    if lines is None or lines[0] != lines[1]:
        raise UsageError(f"which line of {name}? Say it as FILE:LINE")
    with this_home() as home:
        with progress_line():
            blamed = ask_after_catching_up(
                home, partial(home.blame, name, lines=lines), lambda blamed: blamed.lines
            ).lines[0]
        authors = (blamed.author,) if blamed.author is not None else blamed.authors
        with progress_line():
            turns = [_AuthorTurn(home, author) for author in authors]
        if as_json:
            print_json({"line": json_line(blamed), "turns": [turn.fields() for turn in turns]})
            return
        for line in _lines(blamed, turns):
            print(line)


class _AuthorTurn:
    """What a session says of a turn that wrote a line."""

    def __init__(self, home: Home, author: LineAuthor) -> None:
        self.author = author
        self.asked: str | None = None
        self.answer: str | None = None
        self.changes: list[Difference] = []
        self.problem = ""
        with home.read(author.session) as session:
            turn = next((name for name, number in turns_of(session).numbers.items() if number == author.turn), None)
            for entry in session.entries():
                if isinstance(entry, Message) and entry.turn == turn:
                    self._add(entry)
            try:
                self.changes = session.diff(turn=author.turn)
            except TurnlogError as error:
                self.problem = error.message

    def _add(self, entry: Message) -> None:
        text = text_of(entry.blocks).strip()
        if self.asked is None and is_prompt(entry):
            self.asked = text
        elif entry.role == "assistant" and text:
            self.answer = text

    def fields(self) -> dict[str, Any]:
        """Return the fields of the turn."""
        changes = [json_change(item) for item in self.changes]
        return {**json_author(self.author), "asked": self.asked, "answer": self.answer, "changes": changes}


def _lines(line: BlamedLine, turns: list[_AuthorTurn]) -> Iterator[str]:
    yield from blamed_lines([line])
    if line.why is not None:
        yield ""
        yield _why(line)
    for turn in turns:
        yield ""
        yield from _turn(turn)


def _why(line: BlamedLine) -> str:
    words = IN_WORDS[line.why or ""]
    commit = f" with commit {line.commit}" if line.commit else ""
    seen = f"; the first checkpoint that has it is of {local_minute(line.at)}" if line.at and not line.authors else ""
    return f"{words}{commit}{seen}"


def _turn(turn: _AuthorTurn) -> Iterator[str]:
    author = turn.author
    parts = (
        f"turn {author.turn} of session {session_name(author)}",
        author.agent,
        author.model,
        local_minute(author.at),
    )
    yield coloured(one_line(", ".join(filter(None, parts))), "bold", sys.stdout)
    yield one_line(f"`turnlog show {quoted(session_name(author))} --at {author.entry}` shows what was said around it")
    for head, text in (("asked", turn.asked), ("answered", turn.answer)):
        if text:
            yield ""
            yield coloured(f"{head}:", "dim", sys.stdout)
            yield from (f"  {line}".rstrip() for line in safe(text).split("\n"))
    yield ""
    if turn.problem:
        yield one_line(f"what it changed is not known: {turn.problem}")
    yield from diff_lines(turn.changes)
