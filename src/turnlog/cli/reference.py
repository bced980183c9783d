"""docs/cli.md, written from the help of the commands: `python -m turnlog.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import wrap

from turnlog.cli.frame.command import Command
from turnlog.cli.frame.commandlist import command_names, get_command
from turnlog.cli.frame.document.shape import Field, bare
from turnlog.cli.frame.help import help_of
from turnlog.cli.interface import ENVIRONMENT, exit_codes, filters
from turnlog.cli.program import PROGRAM

_WIDTH = 88
_KINDS = {
    "string": "a text", "time": "a time", "integer": "a number", "number": "a number", "boolean": "true or false",
    "object": "an object", "list": "a list", "strings": "a list of texts", "any": "any JSON",
}  # fmt: skip
_MANNERS = """\
- Data goes to stdout, everything else to stderr. With `--json`, stdout holds one JSON document with a `version`, and
  `watch` prints one on every line; that number is the command's own. It rises when a field changes its meaning or is
  removed, not when one is added. `turnlog api COMMAND --json` has the schema.
- With `--json`, `--fields a,b.c` keeps only these fields of each item (hit, session, group …), or of the document if it
  has no list; the rest of the document stays. `--max-bytes N` limits its size to whole items. `left_out` is the number
  of items that did not fit; pass `cursor` to `--cursor` to get them. It is null at the end, and for commands that
  change something, which would do it again. A list has one item per line.
- An error is one line, `error: …`, and a line `hint: …` with the next step; with `--json`, a JSON object on stderr:
  `{"version": 1, "error": {"code", "message", "hint", "exit_code", "candidates"}}`, for wrong options as well. A
  traceback appears only with `--debug`.
- Nothing waits for input if stdin is not a terminal: a command that would ask refuses, with a hint what to type
  instead. Only `compact --summary -`, `statusline` and the server `mcp` read stdin, and `run` passes it to its command.
- `--home` and `--debug` may also follow the command.
- Text from a log is untrusted: control characters, escape sequences and bidirectional controls are shown as
  `\\x1b` or `\\u202e`, in titles as well. `--json` has the text unchanged, with these as JSON escapes.
- Of a workspace, only `rewind`, `undo` and `redo` change files, also from `tui`, `web` and `mcp --allow-rewind`: after
  a preview and a question, or with `--yes`. Without a terminal and without `--yes` they refuse. Ctrl-C at the question
  changes nothing. `run` runs a command, which may change anything.
- A place to go back to, or to compare with, is the number of an entry (`12`), `turn:3` for the point before turn 3
  began, or the label of a checkpoint (`label:12` for one that looks like something else).
- Reading takes no lock, and works while an agent is writing.
- Sessions of other agents are only read: `export` and `resume` write new files beside them, and overwrite none, except
  `export --force`. Settings of other agents are changed by `hooks`, `mcp`, `keep` and `setup`, which show what they do.
- A session is named by its id or handle (`20261115-070012-k3f9q2m7`, `k3f9q2m7`) or any unique beginning of one.
  A session of another agent is `agent:id`, as in `codex:0199a3`, or a beginning of that; commands that only read open
  it in place, `fork` and `resume --in` import it first and report that, others require `turnlog import` first. `@` is
  the newest session of this folder, or of the nearest above it that has any; `@-` is the one before, `@-2` the one
  before that; `latest` is the newest of all. A file or folder of another agent works, too: a word that names both means
  the session, and `./word` is the file. Put an id that begins with a dash after `--`.
- If several sessions match, they are listed on stderr, and with `--json` in `candidates` of the error. Commands that
  change something take a session of this folder by default, never one from elsewhere.
- Every command that shows a session reports an interrupted rewind; `turnlog rewind --continue` finishes it, `turnlog
  rewind --abort` takes it back.
- `COLUMNS` sets the width of output that does not go to a terminal; without it, nothing is truncated. Colours and
  progress are for terminals only; `NO_COLOR` turns colours off. `turnlog show` goes through `PAGER` on a terminal
  (`less -R` by default, none if it is empty or `cat`); `--no-pager` skips that.
- `turnlog completion` prints the script with which bash, zsh and fish complete commands, options, agents and sessions.
- If stdout is closed, a command refuses before it does anything; if it is full, the command reports that and exits
  with 8. A reader that closes a pipe ends the command quietly."""


_NOTE = """\
`turnlog doctor` exits with 6 when it finds something wrong. A rewind, undo or redo that could not do everything it
announced exits with 5. `turnlog run` exits with the exit code of the command, or 128 and the number of the signal that
ended it. Codes and names never change their meaning."""


GENERATED_NOTE = "<!-- Made by `python -m turnlog.cli.reference > docs/cli.md`; a test keeps it current. -->"


def reference(*about: str) -> str:
    """Return the whole page, with these paragraphs about it on top."""
    return "\n".join(_page(*about)) + "\n"


def _page(*about: str) -> Iterator[str]:
    yield "# The command line"
    yield ""
    for paragraph in about:
        yield paragraph
        yield ""
    yield from _help(PROGRAM)
    yield ""
    yield _MANNERS
    for name in command_names():
        yield ""
        yield from section(name)
    yield ""
    yield from _tables()


def section(name: str) -> Iterator[str]:
    """Yield the section about one command."""
    command = get_command(name)
    yield f"## turnlog {name}"
    yield ""
    yield from _help(command)
    yield ""
    yield f"Changes: {command.module.CHANGES}."
    yield from _fields(command)


def _help(command: Command) -> Iterator[str]:
    yield "```text"
    yield help_of(command, _WIDTH)
    yield "```"


def _fields(command: Command) -> Iterator[str]:
    """Yield the fields of the JSON of a command, besides the version."""
    yield ""
    yield "With `--json`:"
    yield ""
    for field, shape in command.module.FIELDS.items():
        maybe = " (not always)" if field.startswith("[") else ""
        yield from wrap(f"- `{bare(field)}`{maybe}: {_meaning(shape)}", width=120, subsequent_indent="  ")


def _meaning(field: Field) -> str:
    """Return what a field means, and what is in it."""
    null = "or null" if field.null and "null" not in field.meaning else ""
    meaning = ", ".join(filter(None, (field.meaning, null)))
    if not field.fields or "format.md" in meaning:
        return meaning or _KINDS[field.kind]
    inside = (f"`{bare(name)}`{_aside(inner)}" for name, inner in field.fields.items())
    return f"{meaning}: {', '.join(inside)}" if meaning else ", ".join(inside)


def _aside(field: Field) -> str:
    inside = ", ".join(f"`{bare(name)}`" for name in field.fields or {})
    words = ": ".join(filter(None, (field.meaning, inside)))
    return f" ({words})" if words else ""


def _tables() -> Iterator[str]:
    """Yield the tables that are the same for all commands."""
    yield "## Exit codes"
    yield ""
    yield "| code | name | what happened |"
    yield "| --- | --- | --- |"
    for row in exit_codes():
        yield f"| {row['code']} | {_code(row['name'])} | {row['meaning']} |"
    yield ""
    yield from _NOTE.splitlines()
    yield ""
    yield "## Environment"
    yield ""
    yield "| variable | |"
    yield "| --- | --- |"
    for variable, meaning in ENVIRONMENT.items():
        yield f"| `{variable}` | {meaning} |"
    yield ""
    yield "## Filters"
    yield ""
    yield "For `ls`, `search` and `usage`; a `-` before one means the opposite."
    yield ""
    yield "| filter | |"
    yield "| --- | --- |"
    for example, meaning in dict.fromkeys((row["example"], row["meaning"]) for row in filters()):
        yield f"| `{example}` | {meaning} |"


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


if __name__ == "__main__":
    sys.stdout.write(reference(GENERATED_NOTE))
