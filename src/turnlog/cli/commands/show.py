"""`turnlog show`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from turnlog.cli.option import look_at, print_json, session_argument, shared, this_home
from turnlog.cli.summary import in_full, tokens
from turnlog.cli.text import clip, count, moment, one_line, screen_width
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
@shared
def command(session: str | None, last: int | None, as_context: bool, full: bool, as_json: bool) -> None:
    """Print the conversation of a session."""
    with this_home() as home, look_at(home, session) as found:
        system = ""
        if as_context:
            context = found.context()
            system = context.system
            messages: Sequence[Message] = context.messages[-last:] if last else context.messages
        else:
            messages = found.messages(last=last)
        if as_json:
            _print_json(found, messages, system if as_context else None)
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
        if last is None:
            warn_of_damage(found)


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


def _print_json(found: Readable, messages: Sequence[Message], system: str | None) -> None:
    data: dict[str, Any] = {
        "session": found.id,
        "title": found.title,
        "workspace": found.workspace,
        "agent": found.agent,
        "head": found.head,
        "messages": [msgspec.Raw(body_text(message).encode()) for message in messages],
        "pending": [call.id for call in pending(messages)],
    }
    if system is not None:
        data["system"] = system
    print_json(data)
