"""`turnlog show`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from turnlog.cli.elsewhere import Elsewhere, Several, is_session, is_there, read_from
from turnlog.cli.option import (
    VERSION,
    look_at,
    session_argument,
    shared,
    this_home,
    to_json,
    warn_of_interruption,
    write_json,
)  # fmt: skip
from turnlog.cli.problem import tell_problems
from turnlog.cli.summary import in_full, tokens
from turnlog.cli.text import clip, count, moment, one_line, screen_width
from turnlog.errors import Invalid
from turnlog.log.block import Text
from turnlog.log.codec import body_text
from turnlog.log.context import pending
from turnlog.log.entry import Message

if TYPE_CHECKING:
    from turnlog.cli.look import Look
    from turnlog.session.readable import Readable


@click.command()
@session_argument
@click.option("--last", "-n", type=click.IntRange(min=1), metavar="N", help="Only the last N messages.")
@click.option("--context", "as_context", is_flag=True, help="What a model would see now: compacted, repaired.")
@click.option("--full", is_flag=True, help="All of every tool call and its output.")
@click.option("--key", metavar="KEY", help="Which session, where a file of another agent has several: a number or id.")
@shared
def command(
    session: str | None, last: int | None, as_context: bool, full: bool, key: str | None, as_json: bool
) -> None:
    """Print the conversation of a session: one of ours, or one of another agent in a file.

    SESSION may be a file or folder in any form that `turnlog formats` lists. It is read where it lies, and nothing is
    kept of it. A word that is both is the session; with a slash in it, as in ./abc, it is the file.

    With --json, `totals` says how many messages of user and assistant, tool calls and results there are, and what was
    used: in the conversation and all its branches, without subagents and without what a fork inherited.

    \b
    turnlog show
    turnlog show k3f9 --last 5
    turnlog show ~/.codex/sessions/2026/11/15/rollout-….jsonl
    """
    with ExitStack() as stack:
        found, elsewhere = _find(stack, session, key, as_json=as_json)
        system: str | None = None
        messages: Iterable[Message]
        if as_context:
            context = found.context()
            system = context.system
            messages = context.messages[-last:] if last else context.messages
        else:
            messages = found.messages(last=last) if last else found.each_message()
        if as_json:
            _print_json(found, messages, system, elsewhere)
            return
        for line in _header(found):
            print(line)
        if system:
            _print_message(Message(role="system", blocks=[Text(text=system)]), full)
        waiting = pending(_printed(messages, full))
        if waiting:
            names = ", ".join(f"{call.name} ({call.id})" for call in waiting)
            print(one_line(f"no result yet: {names}"), file=sys.stderr)
        if elsewhere is not None:
            tell_problems([(elsewhere.source.path, elsewhere.problems)])
            return
        if last is None:
            warn_of_damage(found)
        warn_of_interruption(found)


def _find(stack: ExitStack, word: str | None, key: str | None, *, as_json: bool) -> tuple[Look, Elsewhere | None]:
    """The session that is meant, open until the stack is left, and where it was read if it is none of ours."""
    if word is None or not is_there(word) or "/" not in word:
        home = stack.enter_context(this_home())
        if word is None or not is_there(word) or is_session(home, word):
            found = stack.enter_context(look_at(home, word))
            if key is not None:
                raise Invalid(f"session {found.handle} is one of ours", hint="--key is for a file of another agent")
            return found, None
    try:
        elsewhere = stack.enter_context(read_from(word, key))
    except Several as error:
        if not as_json:
            print("\n".join(error.lines), file=sys.stderr)
        raise
    return stack.enter_context(look_at(elsewhere.home, elsewhere.id)), elsewhere


def warn_of_damage(found: Readable) -> None:
    """Say it where a person sees it, if something in the log could not be read."""
    damage = found.damage
    if damage:
        where = count(len(damage), "damaged region")
        print(f"warning: {where} in this log; `turnlog doctor {one_line(found.handle)}` explains", file=sys.stderr)


def _header(found: Readable) -> list[str]:
    stats, usage = found.stats(), found.usage().total
    facts = [
        found.id,
        found.agent or "",
        count(stats.messages, "message"),
        count(stats.turns, "turn"),
        tokens(usage) if usage.all_input_tokens or usage.output_tokens else "",
        found.workspace or "",
    ]
    lines = [one_line(found.title or "(no title)"), one_line(" · ".join(filter(None, facts)))]
    room = screen_width()
    return lines if room is None else [clip(line, room) for line in lines]


def _speaker(message: Message) -> str:
    facts = [
        message.role,
        message.agent or "",
        message.model or "",
        f"entry {message.seq}" if message.seq else "made for the model" if message.role != "system" else "",
        moment(message.at),
        tokens(message.usage) if message.usage is not None else "",
        message.stop if message.stop in ("length", "aborted", "error") else "",
    ]
    return one_line(" · ".join(filter(None, facts)))


def _printed(messages: Iterable[Message], full: bool) -> Iterator[Message]:
    for message in messages:
        _print_message(message, full)
        yield message


def _print_message(message: Message, full: bool) -> None:
    print(f"\n{_speaker(message)}")
    for line in in_full(message, everything=full):
        print(f"  {line}".rstrip())


def _print_json(found: Look, messages: Iterable[Message], system: str | None, elsewhere: Elsewhere | None) -> None:
    """One object, written as it is read: a conversation may be larger than memory."""
    data: dict[str, Any] = {
        "version": VERSION,
        "session": found.id,
        "title": found.title,
        "workspace": found.workspace,
        "agent": found.agent,
        "head": found.head,
        "totals": found.totals(),
    }
    if system is not None:
        data["system"] = system
    if elsewhere is not None:
        data["source"] = elsewhere.source
        data["problems"] = elsewhere.problems
    write_json(to_json(data)[:-1] + b',"messages":[')
    waiting = pending(_written(messages))
    write_json(b'],"pending":' + to_json([call.id for call in waiting]) + b"}")


def _written(messages: Iterable[Message]) -> Iterator[Message]:
    lead = b""
    for message in messages:
        write_json(lead + body_text(message).encode())
        lead = b","
        yield message
