"""What Turnlog holds of a conversation, in the words in which the real agents' requests are compared with it."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable
from typing import Any

from tests.agents import script
from tests.agents.drive import AGENTS
from tests.agents.resumed import heard
from tests.agents.script import Block, Call, Conversation, Result, flat
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.formats._shared.tally import stand_in
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult

PI_SUMMARY = re.compile(r"The conversation history before .*?<summary>\n(.*)\n</summary>", re.DOTALL)
OPENCODE_ASKS = "What did we do so far?"
"""How these two put a summary to the model: it is theirs, and not what was said."""
CLAUDE_CODE_SUMMARY = re.compile(r"This session is being continued from [^\n]*What was said before:\n\n", re.DOTALL)
"""What we put before a summary, because that is how Claude Code's begin."""
ITSELF: dict[str, tuple[tuple[str, Block], ...]] = {
    # When it goes on with a session in which a prompt or a result has no answer.
    "claude-code": (
        ("user", script.Text("Continue from where you left off.")),
        ("assistant", script.Text("No response requested.")),
    ),
    "gemini-cli": (("assistant", script.Text("[The previous response was interrupted before it completed.]")),),
    "opencode": (("user", script.Text("Attached media from tool result:")),),
    "pi": (("user", script.Text("Attached image(s) from tool result:")),),
}
"""What agents put into a conversation on their own account."""
REMINDER = re.compile(r"\n*<system-reminder>\n<total_tokens>[^<]*</total_tokens>\n</system-reminder>")
"""What Claude Code says behind the results of tools, whose ends it trims for that."""
PI_SEE = "(see attached image)"

Said = list[tuple[str, Block]]


def held(session: Any, lost: Collection[str] = ()) -> Conversation:
    """The conversation as `context()` gives it; with words where an export says that pictures or files are lost."""
    messages = transcript_of(session).context.messages
    return [(message.role, [_block(block, lost) for block in message.blocks]) for message in messages]


def _block(block: AnyBlock, lost: Collection[str]) -> Block:
    match block:
        case Text(text=text):
            return script.Text(text)
        case Image(data=bytes()) if "image" not in lost:
            return _media(block)
        case File(data=bytes()) if "file" not in lost:
            return _media(block)
        case Thinking(text=text, data=data):
            about = data if isinstance(data, dict) else {}
            item = about.get("item") or {}
            return script.Thinking(text, str(about.get("signature") or item.get("encrypted_content") or ""))
        case ToolCall(id=id, name=name, input=given, by=None, meta=meta):
            space = (meta or {}).get("openai", {}).get("namespace")
            return Call(id, f"{space}/{name}" if space else name, given)
        case ToolResult(call=call, content=content, is_error=is_error):
            inner = [Text(text=content)] if isinstance(content, str) else content
            text = "\n".join(part.text for part in inner if isinstance(part, Text))
            return Result(call, text, is_error, tuple(_media(part) for part in inner if isinstance(part, Image)))
        case _:
            return script.Text(stand_in(block))


def _media(block: Image | File) -> script.Image:
    assert block.data is not None
    return script.Image(block.media_type or "", b64encode(block.data).decode())


def alike(agent: str, conversation: Conversation) -> Said:
    """A conversation of that agent without what it says on its own account, and without how it says it.

    Whether a tool failed is left to those who can say so, and what a model thought to those who send it back.
    """
    said: Said = []
    media: list[script.Image] = []
    """Pictures of results: some agents send them behind all results, as the user's."""
    for role, block in [*flat(heard(AGENTS[agent], conversation)), ("", script.Text("end"))]:
        one: Block = block
        if role != "tool":
            said += [("user", image) for image in media]
            media = []
        if (role, block) in ITSELF.get(agent, ()):
            continue
        if isinstance(one, script.Thinking):
            if agent == "gemini-cli":
                continue
            one = script.Thinking(one.text, one.opaque if agent in ("claude-code", "codex") else "")
        elif isinstance(one, Result):
            error = one.error if agent in ("claude-code", "gemini-cli") else None
            text = "" if agent == "pi" and one.text == PI_SEE else one.text
            text = REMINDER.sub("", text).rstrip() if agent == "claude-code" else text
            is_apart = agent in ("gemini-cli", "opencode", "pi")
            one = Result(_call(agent, one.call), text, error, () if is_apart else one.images)
            if (role, one) in said:
                continue  # Gemini CLI sends a result twice after resuming a session of its own
            media += block.images if is_apart and isinstance(block, Result) else ()
        elif isinstance(one, Call):
            # Only Codex has tools that belong somewhere.
            name = one.name if agent == "codex" else one.name.rpartition("/")[2]
            one = Call(_call(agent, one.id), name, one.input)
        elif isinstance(one, script.Image) and agent == "opencode" and one.mime.startswith("text/"):
            one = script.Text(b64decode(one.data).decode().removesuffix("\n"))
        elif isinstance(one, script.Text) and role == "user":
            # Claude Code joins what a user says in a row.
            one = script.Text(_summary(agent, one.text).removesuffix("\n"))
        said.append((role, one))
    del said[-1]
    return _answered(said) if agent == "opencode" else said


def _call(agent: str, id: str) -> str:
    """Gemini CLI puts a tool's name before the id that the model gave."""
    return id.rpartition("__")[2] if agent == "gemini-cli" else id


def _summary(agent: str, text: str) -> str:
    if agent == "pi" and (found := PI_SUMMARY.fullmatch(text)):
        return found[1]
    return CLAUDE_CODE_SUMMARY.sub("", text) if agent == "claude-code" else text


def _answered(said: Said) -> Said:
    """opencode lets the model have said a summary, because it was asked for one."""
    for index, (role, block) in enumerate(said[:-1]):
        if role == "user" and block == script.Text(OPENCODE_ASKS):
            return [*said[:index], ("user", said[index + 1][1]), *_answered(said[index + 2 :])]
    return said


def recorded(pairs: Iterable[list[Any]]) -> Conversation:
    """A request as `expected.json` has it."""
    kinds: dict[str, Any] = {
        "text": script.Text, "thinking": script.Thinking, "image": script.Image, "call": Call, "result": Result,
    }  # fmt: skip
    found: Conversation = []
    for role, raw in pairs:
        about = {key: value for key, value in raw.items() if key != "kind"}
        if "images" in about:
            about["images"] = tuple(script.Image(**image) for image in about["images"])
        found.append((role, [kinds[raw["kind"]](**about)]))
    return found
