"""A session as Gemini CLI would have recorded it: one line per message, with calls and results inside the model's."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from typing import Any

import msgspec

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript, Writing
from turnlog.formats._shared.compactedview import answered, as_uuid, iso, short_id, view_of, when
from turnlog.formats._shared.losses import count_losses
from turnlog.formats._shared.tally import Tally
from turnlog.formats.gemini_cli.content import is_aside
from turnlog.interop.copied import mark_of
from turnlog.interop.folder import head_of
from turnlog.interop.place import put_file, put_files
from turnlog.interop.records import record_in
from turnlog.interop.value import fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Message
from turnlog.log.usage import Usage


def write(transcript: Transcript) -> Rendered:
    """See `turnlog.formats`."""
    is_own = transcript.agent == "gemini-cli"
    session = as_uuid(transcript.source_id) if is_own else as_uuid("session", transcript.id)
    writer = _Writer(transcript, session)
    writer.run()
    data = b"".join(msgspec.json.encode(record) + b"\n" for record in writer.records)
    start = iso(None, transcript.created)[:16].replace(":", "-")
    root = transcript.folder or "/"
    name = f"{slug(root)}/chats/session-{start}-{session[:8]}.jsonl"
    return Rendered(id=session, files=[OutputFile(name, data, 0o600)], lost=writer.tally.losses(), about=root)


def slug(root: str) -> str:
    """A name for a project, of the kind that the program gives."""
    word = re.sub(r"[^a-z0-9]+", "-", os.path.basename(root.rstrip("/")).lower()).strip("-") or "project"
    return f"{word[:60]}-{short_id(root)}"


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """See `turnlog.formats`. The folder is `~/.gemini/tmp` or stands for it.

    The program knows a project's folder by name from `projects.json` beside it, and by a note inside it.
    """
    root, files = str(written.about), written.files
    home, base = os.path.split(os.path.abspath(folder))
    registry = os.path.join(home, "projects.json")
    registered = _registry(registry) if base == "tmp" else None
    name = fields(registered).get("projects", {}).get(root)
    if isinstance(name, str) and re.fullmatch(r"[a-z0-9-]+", name):
        files = [OutputFile(f"{name}/{output.path.partition('/')[2]}", output.data, output.mode) for output in files]
    path = put_files(files, folder, force=force)[0]
    project = os.path.dirname(os.path.dirname(path))
    note = os.path.join(project, ".project_root")
    if not os.path.exists(note):
        put_file(note, root.encode(), mode=0o600)
    if registered is not None:
        _register(registry, root, os.path.basename(project))
    return path


def _registry(path: str) -> dict[str, Any] | None:
    """What `projects.json` says; None for a file that is none, or cannot be read."""
    if not os.path.lexists(path):
        return {"projects": {}}
    registry = record_in(head_of(path, 16 << 20) or b"")
    return registry if isinstance(registry.get("projects"), dict) else None


def _register(path: str, root: str, name: str) -> None:
    """Add a project, under the lock of the program. While that has it, the note has to do."""
    try:
        os.mkdir(f"{path}.lock")
    except OSError:
        return
    try:
        if (registry := _registry(path)) is not None and root not in registry["projects"]:
            registry["projects"][root] = name
            put_file(path, msgspec.json.encode(registry), mode=0o600, force=True)
    finally:
        os.rmdir(f"{path}.lock")


class _Writer:
    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._session = session
        self._is_own = transcript.agent == "gemini-cli"
        self._taken: set[str] = set()
        self._at = transcript.created
        self.records: list[dict[str, Any]] = []
        self.tally = Tally()

    def run(self) -> None:
        transcript, view = self._transcript, view_of(self._transcript)
        root = transcript.folder or "/"
        self.records.append({
            "sessionId": self._session, "projectHash": sha256(root.encode()).hexdigest(),
            "startTime": iso(None, transcript.created), "lastUpdated": iso(transcript.updated, transcript.created),
            "kind": "main", **mark_of(transcript.copied),
        })  # fmt: skip
        if view.compaction is not None:
            self.records += self._messages([*view.hidden, *view.kept])
            self._taken.clear()
            self.records.append(
                {"$set": {"messages": self._messages([*view.summary_messages, *view.other_replacement, *view.kept])}}
            )
        self.records += self._messages(view.messages)
        title = {"summary": transcript.title} if transcript.title else {}
        self.records.append({"$set": {"lastUpdated": iso(transcript.updated, transcript.created), **title}})
        own: set[LossWord] = {"details of a tool result"} if self._is_own else set()
        directories = transcript.facts.get("directories") if self._is_own else None
        facts = ["directories"] if isinstance(directories, list) else []
        if facts:
            self.records[0]["directories"] = directories
        count_losses(transcript, view, self.tally, carried=_CARRIED | own, facts=facts)

    def _messages(self, messages: list[Message]) -> list[dict[str, Any]]:
        """Results stand right behind their calls, so that an id may come again later."""
        records: list[dict[str, Any]] = []
        for message, behind in answered(messages):
            created = self._transcript.created
            results = {block.call: (block, iso(at or when(message), created)) for block, at in behind}
            records.append(self._message(message, results))
            times = [at for _, at in results.values()]
            self.tally.add("time of a tool result", "the last of them", len(set(times)) - bool(times))
        return records

    def _id(self, message: Message) -> str:
        wanted = as_uuid(message.id) if len(message.id) == 36 else as_uuid(self._session, message.id)
        while wanted in self._taken:
            wanted = as_uuid(wanted, "again")
        self._taken.add(wanted)
        return wanted

    def _message(self, message: Message, results: dict[str, tuple[ToolResult, str]]) -> dict[str, Any]:
        self._at = when(message) or self._at
        about: dict[str, Any] = {"id": self._id(message), "timestamp": iso(self._at, self._at)}
        if message.role != "assistant":
            # The program knows by its beginning what it put there itself.
            is_aside_there = message.display is False and is_aside(message.blocks)
            if message.role == "system":
                self.tally.add("role of a system message", "a message of the user's")
            elif isinstance(message.display, str) and message.display:
                about["displayContent"] = [{"text": message.display}]
            elif message.display is not None and not is_aside_there:
                self.tally.add("how a message is shown", "as it was sent")
            parts = [self._part(block) for block in message.blocks] or [{"text": "(no content)"}]
            return {**about, "type": "user", "content": parts}
        calls = [block for block in message.blocks if isinstance(block, ToolCall) and block.by is None]
        thoughts: list[dict[str, Any]] = []
        for block in message.blocks:
            if isinstance(block, Thinking) and block.provider == "gemini" and block.text:
                subject, _, rest = block.text.partition("\n")
                thoughts.append({"subject": subject, "description": rest, "timestamp": about["timestamp"]})
                self.tally.add("sealed reasoning", "its readable part", int(bool(block.data)))
            elif isinstance(block, Thinking):
                self.tally.add("reasoning")
        return {
            **about, "type": "gemini", "content": self._content(message.blocks), "thoughts": thoughts,
            "tokens": _tokens(message.usage or Usage()), "model": message.model or "unknown",
            "toolCalls": [self._call(call, *results.get(call.id, (None, about["timestamp"]))) for call in calls],
        }  # fmt: skip

    def _content(self, blocks: list[AnyBlock]) -> Any:
        """A text; parts where there are several; with the calls among them where a text follows one."""
        parts: list[dict[str, Any]] = []
        is_mixed = False
        for block in blocks:
            if isinstance(block, ToolCall) and block.by is None:
                value: Any = block.input
                args = fields(value) if isinstance(value, dict) else {"input": value}
                parts.append({"functionCall": {"id": block.id, "name": block.name or "unknown", "args": args}})
            elif isinstance(block, Thinking):
                continue
            elif text := block.text if isinstance(block, Text) else self.tally.stand_in_for(block):
                is_mixed = is_mixed or any("functionCall" in part for part in parts)
                parts.append({"text": text})
        parts = [part for part in parts if is_mixed or "text" in part]
        return parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts or ""

    def _part(self, block: AnyBlock, where: str = "") -> dict[str, Any]:
        if isinstance(block, Text):
            return {"text": block.text}
        if isinstance(block, (Image, File)) and block.data is not None and block.media_type:
            return {"inlineData": {"mimeType": block.media_type, "data": b64encode(block.data).decode()}}
        return {"text": self.tally.stand_in_for(block, where)}

    def _call(self, call: ToolCall, result: ToolResult | None, at: str) -> dict[str, Any]:
        name, args = call.name or "unknown", self.tally.input_object(call)
        content = result.content if result is not None else "[no result]"
        output = content if isinstance(content, str) else "\n".join(b.text for b in content if isinstance(b, Text))
        rest = [] if isinstance(content, str) else [b for b in content if not isinstance(b, Text)]
        display = result.details if self._is_own and result is not None else None
        failed = result is None or result.is_error
        answer = {"error": output} if failed else {"output": output}
        return {
            "id": call.id, "name": name, "args": args,
            "result": [
                {"functionResponse": {"id": call.id, "name": name, "response": answer}},
                *(self._part(block, " in a tool result") for block in rest),
            ],
            "status": "error" if failed else "success", "timestamp": at, "displayName": name, "description": "",
            "resultDisplay": display or output[:2000], "renderOutputAsMarkdown": False,
        }  # fmt: skip


_CARRIED: frozenset[LossWord] = frozenset(("reasoning count", "how a message is shown", "role of a system message"))
"""Reported where it is met, or not a loss."""
WRITING = Writing(render=write, place=place, carried=_CARRIED)


def _tokens(usage: Usage) -> dict[str, int]:
    spoken = max(0, usage.output_tokens - usage.reasoning_tokens)
    return {
        "input": usage.all_input_tokens, "output": spoken, "cached": usage.cache_read_tokens,
        "thoughts": usage.reasoning_tokens, "tool": 0, "total": usage.all_input_tokens + usage.output_tokens,
    }  # fmt: skip
