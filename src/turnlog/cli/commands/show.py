"""`turnlog show`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TextIO

from turnlog.cli.draw.foreignproblems import tell_problems
from turnlog.cli.draw.screen import header, this_screen
from turnlog.cli.draw.sessionwarnings import warn_of_damage, warn_of_interruption
from turnlog.cli.fields.source import PROBLEM, SOURCE
from turnlog.cli.frame.command import KEY_OPTION, SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.entryshape import message_fields
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.pager import paged
from turnlog.cli.pick.browser import choose_session, find_or_choose
from turnlog.cli.pick.session import session_to_read
from turnlog.errors import Unavailable, Unsupported
from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.codec import Header, body_text
from turnlog.log.context.toolturn import pending
from turnlog.log.entry import AnyEntry, Message
from turnlog.log.startup import NamedTuple
from turnlog.reader.opening.opener import OpenedSession
from turnlog.reader.part import Part, part_of
from turnlog.thread.reader import SessionReader, history_of
from turnlog.view.visible import safe

_NAMED = 5
GROUP = "Find", 3
CHANGES = shape.NOTHING
FIELDS = {
    "session": SESSION,
    "title": shape.text(null=True),
    "workspace": shape.text(null=True),
    "agent": shape.text(null=True),
    "head": shape.number("the entry at the end of the conversation"),
    "totals": shape.one(
        "of the whole conversation",
        {
            "messages": shape.number(),
            "tool_calls": shape.number(),
            "tool_results": shape.number(),
            "usage": shape.one(),
        },
    ),
    "[system]": shape.text("the system prompt, with --context", null=True),
    "[source]": shape.one("where it was read, if it is another agent's", SOURCE),
    "[problems]": shape.each("what could not be read", PROBLEM),
    "messages": shape.items("as [the format](format.md) has them", message_fields),
    "pending": shape.texts("tool calls without a result"),
}


@declare(
    SESSION_ARGUMENT,
    Option("--last -n N", "Only the last N messages.", least=1),
    Option("--at ENTRY", "The messages around an entry: its number or id."),
    Option("--branch -b N", "A side branch, by its last entry: see `turnlog tree`."),
    Option("--context", "What a model would see now: compacted, repaired.", name="as_context"),
    Option("--full", "All of every tool call and its output."),
    Option("--raw", "The entries as they are in the log, or in the other agent's file."),
    Option("--no-pager", "Do not page, even on a terminal."),
    KEY_OPTION,
    Option("--pick", "Choose the session from a list: see `turnlog pick`.", name="is_picked"),
)
def command(
    session: str | None,
    last: int | None,
    at: str | None,
    branch: str | None,
    as_context: bool,
    full: bool,
    raw: bool,
    no_pager: bool,
    key: str | None,
    is_picked: bool,
    as_json: bool,
) -> None:
    """Print the conversation of a session, for reading. It may be one of ours, or one of another agent.

    SESSION may be a file or folder in any format that `turnlog formats` lists. It is read in place, and nothing is
    stored. A word that names both means the session; with a slash in it, as in ./abc, it is the file.

    Long output of tools is folded; --full shows all of it. On a terminal it goes through $PAGER.

    With --json, `totals` counts messages of user and assistant, tool calls, results and usage, in the conversation and
    all its branches, without subagents and without what a fork inherited.

    \b
    turnlog show
    turnlog show --pick                       one from a list
    turnlog show k3f9 --last 5
    turnlog show k3f9 --at 42                 around a place that was found
    turnlog show ~/.codex/sessions/2026/11/15/rollout-….jsonl
    """
    if as_context and (at is not None or branch is not None or raw):
        raise _misused("--context is of the conversation as it is now, without --at, --branch and --raw")
    if raw and as_json:
        raise _misused("either --raw or --json")
    if raw and branch is not None:
        raise _misused("--raw prints the whole log: it does not go with --branch")
    if is_picked:
        session = choose_session(session or "", what="`turnlog show --pick`")
    with ExitStack() as stack:

        def find(word: str | None) -> OpenedSession:
            return stack.enter_context(session_to_read(word, key=key))

        opened = find(None) if session is None else find_or_choose(session, find, "show", as_json=as_json)
        if raw:
            _print_raw(opened, _raw_part(opened, last, at), is_paged=not no_pager)
            return
        part = part_of(opened.session, last=last, at=at, branch=branch)
        excerpt = _context(opened, part, last) if as_context else _Excerpt(opened, part, part.entries(opened.session))
        if as_json:
            _print_json(excerpt, is_context=as_context)
        else:
            _print_conversation(excerpt, is_full=full, is_paged=not no_pager)


class _Excerpt(NamedTuple):
    """The part of a session that is shown."""

    opened: OpenedSession
    part: Part
    entries: Iterable[AnyEntry]
    system: str | None = None
    """The system prompt, of what a model would see."""


def _context(opened: OpenedSession, part: Part, last: int | None) -> _Excerpt:
    context = opened.session.context()
    return _Excerpt(opened, part, context.messages[-last:] if last else context.messages, context.system)


def _misused(what: str) -> UsageError:
    return UsageError(what, hint="see `turnlog show --help`")


def _print_conversation(excerpt: _Excerpt, *, is_full: bool, is_paged: bool) -> None:
    """Print the conversation, and on stderr calls without a result, problems and damage."""
    opened, part = excerpt.opened, excerpt.part
    seen: list[Message] = []
    is_read = False
    with paged(is_wanted=is_paged) as out:
        _write(excerpt, out, seen, is_full=is_full)
        is_read = True  # not where the pager was quit before
    if is_read and part.is_end:
        _tell_pending(pending(seen))
    if opened.source is not None:
        tell_problems([(opened.source.path, opened.problems)])
        return
    if part.is_whole:
        warn_of_damage(opened.session)
    warn_of_interruption(opened.session)


def _tell_pending(calls: Sequence[ToolCall]) -> None:
    if calls:
        names = ", ".join(f"{call.name} ({call.id})" for call in calls[:_NAMED])
        names += f" and {len(calls) - _NAMED:,} more" if len(calls) > _NAMED else ""
        tell(f"no result yet: {names}")


def _write(excerpt: _Excerpt, out: TextIO, messages: list[Message], *, is_full: bool) -> None:
    """Write the header and the conversation, and add calls and results of each message to `messages`."""
    from turnlog.view.cost import Costs
    from turnlog.view.rowmaker import Rows
    from turnlog.view.terminal.line import lines_of

    opened, part, entries = excerpt.opened, excerpt.part, excerpt.entries
    screen = this_screen(is_full=is_full, mark=part.mark)
    for line in header(opened, screen, is_whole=part.is_whole):
        print(line, file=out)
    if part.note:
        print(screen.paint(part.note, "dim"), file=out)
    rows = Rows(price=Costs(), size=opened.blob_size)
    rows.take(part.before(opened.session))
    if excerpt.system:
        entries = [Message(role="system", blocks=[Text(text=excerpt.system)]), *entries]
    for line in lines_of(rows.paired(_kept(entries, messages)), screen):
        print(line, file=out)


def _kept(entries: Iterable[AnyEntry], messages: list[Message]) -> Iterator[AnyEntry]:
    """Yield the entries, and add calls and results of each message to `messages`."""
    for entry in entries:
        if isinstance(entry, Message):
            messages.append(_light(entry))
        yield entry


def _light(message: Message) -> Message:
    from msgspec.structs import replace

    blocks = [replace(block, input=None) for block in message.blocks if isinstance(block, ToolCall)]
    results = [replace(block, content="", details=None) for block in message.blocks if isinstance(block, ToolResult)]
    return replace(message, blocks=[*blocks, *results], meta=None, origin=None, display=None)


def _raw_part(opened: OpenedSession, last: int | None, at: str | None) -> Part:
    if opened.source is not None and (last is not None or at is not None):
        raise _misused("--raw of another agent's session is all of it: without --last and --at")
    return part_of(opened.session, last=last, at=at, branch=None)


def _print_raw(opened: OpenedSession, part: Part, *, is_paged: bool) -> None:
    """Print the lines of the log as they are. Where there is no file with lines, the entries."""
    is_seen = sys.stdout.isatty()
    with paged(is_wanted=is_paged) as out:
        binary = getattr(out, "buffer", None)
        for line in _raw_lines(opened, part):
            if is_seen or binary is None:  # a terminal must not be driven by it
                print(safe(line.decode("utf-8", "backslashreplace")), file=out)
            else:
                binary.write(line + b"\n")


def _raw_lines(opened: OpenedSession, part: Part) -> Iterator[bytes]:
    """The lines of the log, or of another agent's file. A database has none: then the entries as a log has them."""
    path = _file(opened)
    inherited = 0 if part.is_whole else history_of(opened.session).inherited_to
    if path is None or part.after < inherited:  # the file of a fork does not have what it inherited
        for entry in opened.session.entries(after=part.after):
            if path is not None and entry.seq > inherited:
                break
            if part.holds(entry.seq):
                yield body_text(entry).encode()
    if path is not None:
        yield from _file_lines(path, part)


def _file_lines(path: str, part: Part) -> Iterator[bytes]:
    from pathlib import Path

    import msgspec

    decoder = msgspec.json.Decoder(Header)
    try:
        with Path(path).open("rb") as file:
            is_in = part.is_whole
            for line in file:
                if not part.is_whole:
                    try:
                        is_in = part.holds(decoder.decode(line).seq)
                    except msgspec.DecodeError:
                        pass  # one that cannot be read is where the one before it is
                if is_in:
                    yield line.rstrip(b"\n")
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from None


def _file(opened: OpenedSession) -> str | None:
    if opened.source is None:
        from turnlog.cli.logpath import log_path

        try:
            return log_path(opened.home, opened.session.id)
        except Unsupported:
            return None
    from pathlib import Path

    path = opened.source.path
    is_text = Path(path).is_file() and path.endswith((".jsonl", ".json", ".ndjson"))
    return path if is_text and not opened.source.key else None


def _print_json(excerpt: _Excerpt, *, is_context: bool) -> None:
    """Write one object as it is read: a conversation may be larger than memory."""
    from turnlog.cli.frame.document.entrylist import EntryPage
    from turnlog.cli.frame.document.itemlist import ItemPage

    opened, reader = excerpt.opened, excerpt.opened.session
    data: dict[str, Any] = {
        "session": reader.id,
        "title": reader.title,
        "workspace": reader.workspace,
        "agent": reader.agent,
        "head": excerpt.part.head,
        "totals": _totals(reader),
    }
    if excerpt.system is not None:
        data["system"] = excerpt.system
    if opened.source is not None:
        data["source"] = opened.source
        data["problems"] = opened.problems
    messages = (entry for entry in excerpt.entries if isinstance(entry, Message))
    seen: list[Message] = []
    kept = _kept(messages, seen)
    if is_context:  # made for a model: some of it is no entry, and has no number to go on behind
        listed = ItemPage([body_text(message).encode() for message in kept], key=bytes.decode)
        data["pending"] = [call.id for call in pending(seen)]
    else:
        listed = EntryPage(kept, other_fields=lambda: {"pending": [call.id for call in pending(seen)]})
    print_json({**data, "messages": listed})


def _totals(session: SessionReader) -> dict[str, Any]:
    """How much is in its own log, whichever branch it is on. Subagents and what it inherited count where they are."""
    from msgspec.structs import asdict

    messages = calls = results = 0
    history = history_of(session)
    for entry in history.forward(history.inherited_to):
        if isinstance(entry, Message):
            messages += entry.role in ("user", "assistant")
            calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
            results += sum(isinstance(block, ToolResult) for block in entry.blocks)
    usage = asdict(history.state.own)
    return {"messages": messages, "tool_calls": calls, "tool_results": results, "usage": usage}
