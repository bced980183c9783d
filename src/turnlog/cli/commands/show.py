"""`turnlog show`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
import msgspec

from turnlog.cli.elsewhere import Elsewhere, Several, is_session, is_there, read_from
from turnlog.cli.option import look_at, print_json, session_argument, shared, this_home, warn_of_interruption
from turnlog.cli.problem import tell_problems
from turnlog.cli.summary import in_full, tokens
from turnlog.cli.text import clip, count, moment, one_line, screen_width
from turnlog.cli.totals import totals_of
from turnlog.errors import NotFound
from turnlog.log.block import Text
from turnlog.log.codec import body_text
from turnlog.log.context import pending
from turnlog.log.entry import Message

if TYPE_CHECKING:
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
        system = ""
        if as_context:
            context = found.context()
            system = context.system
            messages: Sequence[Message] = context.messages[-last:] if last else context.messages
        else:
            messages = found.messages(last=last)
        if as_json:
            _print_json(found, messages, system if as_context else None, elsewhere)
            return
        for line in _header(found):
            print(line)
        if system:
            messages = [Message(role="system", blocks=[Text(text=system)]), *messages]
        for message in messages:
            print(f"\n{_speaker(message)}")
            for line in in_full(message, everything=full):
                print(f"  {line}".rstrip())
        waiting = pending(messages)
        if waiting:
            names = ", ".join(f"{call.name} ({call.id})" for call in waiting)
            print(one_line(f"no result yet: {names}"), file=sys.stderr)
        if elsewhere is not None:
            tell_problems([(elsewhere.source.path, elsewhere.problems)])
            return
        if last is None:
            warn_of_damage(found)
        warn_of_interruption(found)


def _find(stack: ExitStack, word: str | None, key: str | None, *, as_json: bool) -> tuple[Readable, Elsewhere | None]:
    """The session that is meant, open until the stack is left, and where it was read if it is none of ours."""
    if word is None or not is_there(word):
        home = stack.enter_context(this_home())
        if key is not None and word is not None:
            raise NotFound(f"there is nothing at {word}", hint="--key is for a file of another agent")
        return stack.enter_context(look_at(home, word)), None
    if "/" not in word:
        home = stack.enter_context(this_home())
        if is_session(home, word):
            return stack.enter_context(look_at(home, word)), None
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


def _print_json(found: Readable, messages: Sequence[Message], system: str | None, elsewhere: Elsewhere | None) -> None:
    data: dict[str, Any] = {
        "session": found.id,
        "title": found.title,
        "workspace": found.workspace,
        "agent": found.agent,
        "head": found.head,
        "totals": totals_of(found),
        "messages": [msgspec.Raw(body_text(message).encode()) for message in messages],
        "pending": [call.id for call in pending(messages)],
    }
    if system is not None:
        data["system"] = system
    if elsewhere is not None:
        data["source"] = elsewhere.source
        data["problems"] = elsewhere.problems
    print_json(data)
