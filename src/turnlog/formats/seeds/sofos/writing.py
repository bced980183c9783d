"""A session as a file that sofos loads: untouched messages to the byte, and an account of what it cannot hold."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript
from turnlog.formats._shared.compactedview import seen_on, short_id
from turnlog.formats._shared.losses import with_losses
from turnlog.formats._shared.origin import is_of
from turnlog.formats._shared.tally import Tally, is_import_note
from turnlog.formats.seeds.sofos import sessionfile
from turnlog.formats.seeds.sofos.block import record_of
from turnlog.formats.seeds.sofos.sessionfile import AGENT
from turnlog.interop.patch import apply_deep
from turnlog.interop.rust import pretty, trimmed
from turnlog.interop.value import as_list, fields, items, text
from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.context import split_system, text_of
from turnlog.log.context.toolturn import INTERRUPTED, pending, repair
from turnlog.log.entry import Compaction, Custom, Message, Note, Set, Spent
from turnlog.log.usage import Usage

_PREVIEW = 120


def write(transcript: Transcript) -> Rendered:
    """The session's file, and its row in the index."""
    always: tuple[LossWord, ...] = (
        "edit", "compaction", "message before the last compaction", "message on another branch",
    )  # fmt: skip
    words: tuple[LossWord, ...] = ("workspace", "model of a message", "time of a message", "fact")
    return with_losses(transcript, _Writer(transcript).written(), AGENT, *words, always=always)


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.facts = transcript.facts
        self.is_ours = transcript.agent == AGENT
        self.saved = fields(self.facts.get("sofos.file")) if self.is_ours else {}
        self.tally = Tally(transcript.context.get_blob)
        self.mark = 0
        """The entry that set the facts about the file, when it was last read."""
        self.spent: list[tuple[int, Usage]] = []
        self.has_newer = bool(fields(self.saved.get("more")) or "total_cost" in fields(self.saved.get("counters")))
        """Whether sofos itself said more than 0.2.8 can."""
        self._look()
        version = transcript.version
        self.is_first = version == 1 or (version is None and not self.has_newer)
        if self.is_first and self.has_newer:
            self.saved = {name: value for name, value in self.saved.items() if name not in ("more", "keys")}

    def _look(self) -> None:
        for entry in self.transcript.entries():
            is_read = is_of(entry, AGENT)
            if isinstance(entry, Set) and entry.key == "sofos.file" and entry.value == self.saved:
                self.mark = entry.seq
            elif isinstance(entry, Set) and entry.key in sessionfile.NEWER and is_read and self.is_ours:
                self.has_newer = True
            elif isinstance(entry, (Message, Compaction, Spent)) and entry.usage is not None and not is_read:
                self.spent.append((entry.seq, entry.usage))
            elif isinstance(entry, Note) and not is_import_note(entry) and not is_read:
                self.tally.add("note")
            elif isinstance(entry, Custom) and not entry.blocks and not is_read:
                self.tally.add("custom entry")
        if self.transcript.title:
            self.tally.add("title", "a preview of the first message")

    def written(self) -> Rendered:
        values = self.values(*split_system(seen_on(self.transcript.path)))
        names = as_list(self.saved.get("keys"))
        if "safe_mode" in names and "readonly" not in names and "readonly" in values:
            values["safe_mode"] = values.pop("readonly")
        absent_counters = [name for name in sessionfile.TOKENS if names and name not in names and not values[name]]
        ordered = {**dict.fromkeys(names), **values}
        document = {name: value for name, value in ordered.items() if name not in absent_counters}
        opens = "" if self.is_first else "sofos 0.4.3 or newer; an older one since 0.2.8 drops what it does not know"
        file = OutputFile(f"{values['id']}.json", pretty(document, plus=self.saved.get("plus") is True))
        lost = self.tally.losses()
        return Rendered(id=values["id"], files=[file], lost=lost, opens=opens, about=row_of(document))

    def values(self, leading: list[Message], messages: list[Message]) -> dict[str, Any]:
        names, model, display = as_list(self.saved.get("keys")), self.model(), self.display()
        values: dict[str, Any] = {"id": self.id(), "api_messages": self.api(messages)}
        if display or "display_messages" in names:
            values["display_messages"] = display
        values["system_prompt"] = self.system(leading)
        values.update(zip(("created_at", "updated_at"), self.times(), strict=True))
        values.update(self.counters(model, messages))
        modes = {name: self.facts.get(name) if self.is_ours else None for name in sessionfile.NEWER[1:]}
        if self.is_first:
            self.tally.add("reported cost", "", int(values.pop("total_cost", None) is not None))
            self.tally.add("model", "the one sofos would choose", int(model is not None))
            self.tally.add("fact", "", sum(value is not None for value in modes.values()))
        else:
            newer = {"model": model, **modes}
            values |= {name: value for name, value in newer.items() if value is not None or name in names}
        return {**values, **fields(self.saved.get("more"))}

    def id(self) -> str:
        source_id = self.transcript.source_id
        if self.is_ours and sessionfile.is_id(source_id):
            return source_id
        return f"session_{max(0, round(self.transcript.created.timestamp() * 1000))}_{short_id(self.transcript.id)}"

    def times(self) -> tuple[int, int]:
        created, updated = self.saved.get("created_at"), self.saved.get("updated_at")
        began, latest = (max(0, int(at.timestamp())) for at in (self.transcript.created, self.transcript.updated))
        if not isinstance(updated, int):
            updated = latest
        elif any(entry.seq > self.mark for entry in self.transcript.path):  # it went on since the file was last read
            updated = max(updated, latest)
        return created if isinstance(created, int) else began, updated

    def system(self, leading: list[Message]) -> list[Any]:
        texts = [self.facts.get("system"), *(text_of(message.blocks) for message in leading)]
        words = "\n\n".join(filter(None, map(text, texts)))
        if not self.is_ours:  # a compaction hides messages that a prompt begins with, and the prompt stays
            words = self.transcript.context.system or words
        kept = self.facts.get("sofos.system") if self.is_ours else None
        if isinstance(kept, list) and sessionfile.system_text(kept) == words:
            return cast("list[Any]", kept)
        return sessionfile.system_list(words)

    def model(self) -> str | None:
        named = self.facts.get("model")
        answered = [message.model for message in self.transcript.path if isinstance(message, Message) and message.model]
        model = named if isinstance(named, str) else answered[-1] if answered else None
        if model is None or self.is_ours or model.startswith("claude") or sessionfile.counts_cached(model, ()):
            return model
        self.tally.add("model", "the one sofos would choose")  # it refuses to resume with one of another provider
        return None

    def counters(self, model: str | None, messages: list[Message]) -> dict[str, Any]:
        """As they were read, and what was spent since. Newer versions fill 32 bits up rather than overflow."""
        # Without a model in the file, a reader goes by what is there of its reasoning.
        includes = sessionfile.counts_cached(None if self.is_first else model, messages)
        raw, report = self.saved.get("counters"), self.transcript.usage
        if isinstance(raw, dict) and not self.transcript.is_free:
            counters = sessionfile.counters_in(fields(raw))
            for seq, usage in self.spent:
                if seq > self.mark and usage != Usage():
                    if "total_cost" in counters and usage.cost_micros is None:
                        self.tally.add("cost of a response", "what the others cost")
                    given = usage.all_input_tokens
                    counters = sessionfile.counters_after(counters, usage, given, includes_cached=includes)
        else:
            total, peak = report.own + report.inherited, report.peak_input_tokens
            counters = sessionfile.counters_after({}, total, peak, includes_cached=includes)
            if any(isinstance(entry, Message) and entry.usage for entry in self.transcript.path):
                self.tally.add("usage of single messages", "the totals")
        tokens = {name: min(sessionfile.MAX_COUNT, counters.get(name, 0)) for name in sessionfile.TOKENS}
        return {**tokens, "total_cost": counters["total_cost"]} if "total_cost" in counters else tokens

    def api(self, messages: list[Message]) -> list[dict[str, Any]]:
        own = [is_of(message, AGENT) for message in messages]
        if not any(own):
            messages = repair(messages)
        elif not all(own):
            messages = _answered(messages)
        api: list[dict[str, Any]] = []
        last: Message | None = None
        for message in messages:
            is_own = is_of(message, AGENT)
            origin = fields(message.origin) if is_own else {}
            record = apply_deep(record_of(message, self.tally, ours=is_own), origin.get("patch"))
            blocks = [block for block in record["content"] if block is not None]
            follows = message.role == "tool" and last is not None and last.role == "tool"
            joins = bool(origin.get("joins")) if is_own else follows  # results in a row are said in one message
            last = message
            if joins and api and isinstance(api[-1]["content"], list):
                api[-1]["content"] += blocks
                continue
            if not blocks and message.blocks:
                continue  # nothing of it could be said
            is_plain = sessionfile.is_plain(message.role, message.blocks)
            is_text = origin.get("form", "text" if is_plain else "blocks") == "text"
            record["content"] = blocks
            if is_text and len(blocks) == 1 and isinstance(message.blocks[0], Text):
                record["content"] = blocks[0].get("text", "")
            if record["role"] == "system" and not is_own:
                self.tally.add("system message within the conversation", "a message of the user")
                record["role"] = "user"
            api.append(record)
        return api

    def display(self) -> list[Any]:
        """What was shown when it was last read, and what was said since."""
        mark = self.mark if "sofos.display" in self.facts else 0
        displays: list[Any] = []
        if mark:
            before = seen_on([entry for entry in self.transcript.path if entry.seq <= mark])
            displays = sessionfile.lengthened(self.facts.get("sofos.display"), sessionfile.shown(before))
        messages = [entry for entry in self.transcript.path if isinstance(entry, Message)]
        calls = {block.id: block for message in messages for block in message.blocks if isinstance(block, ToolCall)}
        return displays + sessionfile.shown([message for message in messages if message.seq > mark], calls)


def _answered(messages: list[Message]) -> list[Message]:
    """A result for every call that never got one, behind the message that made it; all else as it is."""
    waiting = {id(call) for call in pending(messages)}
    answered: list[Message] = []
    for message in messages:
        answered.append(message)
        calls = [block for block in message.blocks if isinstance(block, ToolCall) and id(block) in waiting]
        if calls:
            cut = ToolResult(call="", content=INTERRUPTED, is_error=True)
            answered.append(Message(role="tool", blocks=[replace(cut, call=one.id, name=one.name) for one in calls]))
    return answered


def row_of(session: dict[str, Any]) -> dict[str, Any]:
    """The row of a session in the index."""
    messages = as_list(session.get("api_messages"))
    return {
        "id": session["id"], "preview": preview_of(messages), "created_at": session["created_at"],
        "updated_at": session["updated_at"], "message_count": len(messages),
    }  # fmt: skip


def preview_of(messages: list[Any]) -> str:
    """The first thing a person said, without the white space around it, cut to 120 characters."""
    contents = (fields(message).get("content") for message in messages if fields(message).get("role") == "user")
    words = next((words for content in contents if (words := trimmed(_first_text(content)))), "Empty session")
    return words if len(words) <= _PREVIEW else words[:_PREVIEW] + "..."


def _first_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return text(next((block.get("text") for block in items(content) if block.get("type") == "text"), None)) or ""
