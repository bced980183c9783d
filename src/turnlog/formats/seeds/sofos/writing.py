"""A session as a file that sofos loads: untouched messages to the byte, and an account of what it cannot hold."""

from __future__ import annotations

from typing import Any, cast

from turnlog.formats import OutputFile, Rendered, Transcript
from turnlog.formats._shared.origin import is_of
from turnlog.formats._shared.patch import apply
from turnlog.formats._shared.rest import also_lost
from turnlog.formats._shared.rust import pretty
from turnlog.formats._shared.tally import Tally, is_import_note
from turnlog.formats._shared.value import fields, listed
from turnlog.formats._shared.view import seen_on, short_id
from turnlog.formats.seeds.sofos import shape
from turnlog.formats.seeds.sofos.block import json_of
from turnlog.formats.seeds.sofos.index import row_of
from turnlog.formats.seeds.sofos.shape import AGENT, Counters
from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.context import INTERRUPTED, pending, repair, split_system, text_of
from turnlog.log.entry import Compaction, Custom, Message, Note, Set, Spent
from turnlog.log.usage import Usage

_ALWAYS = ("edit", "compaction", "message before the last compaction")
_ALSO = ("workspace", "model of a message", "time of a message", "fact")


_NEWER = ("model", "readonly", "permission_preset")
"""Keys that sofos 0.2.8 does not have."""


def write(transcript: Transcript) -> Rendered:
    """The session's file, and its row in the index."""
    written = _Writer(transcript).written()
    return also_lost(transcript, written, "sofos", *_ALSO, always=_ALWAYS)


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.facts = transcript.facts
        self.is_ours = transcript.agent == AGENT
        self.saved = fields(self.facts.get("sofos.file")) if self.is_ours else {}
        self.by_seq = {entry.seq: entry for entry in transcript.path}
        self.tally = Tally(transcript.context.get_blob)
        self.mark = 0
        """Where the facts were set that say how the file was when it was last read."""
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
            if isinstance(entry, Set) and entry.key == "sofos.file" and entry.value == self.saved:
                self.mark = entry.seq
            elif isinstance(entry, Set) and entry.key in _NEWER and is_of(entry, AGENT) and self.is_ours:
                self.has_newer = True
            elif (
                isinstance(entry, (Message, Compaction, Spent)) and entry.usage is not None and not is_of(entry, AGENT)
            ):
                self.spent.append((entry.seq, entry.usage))
            elif isinstance(entry, Note) and not is_import_note(entry) and not is_of(entry, AGENT):
                self.tally.add("note")
            elif isinstance(entry, Custom) and not entry.blocks and not is_of(entry, AGENT):
                self.tally.add("custom entry")
            if isinstance(entry, Message) and entry.seq not in self.by_seq:
                self.tally.add("message on another branch")
        if self.transcript.title:
            self.tally.add("title", "a preview of the first message")

    def written(self) -> Rendered:
        messages = seen_on(self.transcript.path)
        leading, messages = split_system(messages)
        values = self.values(leading, messages)
        id = values["id"]
        names = listed(self.saved.get("keys"))
        if "safe_mode" in names and "readonly" not in names and "readonly" in values:
            values["safe_mode"] = values.pop("readonly")
        order = [*names, *(name for name in values if name not in names)]
        zero = [name for name in shape.TOKENS if names and name not in names and not values[name]]
        document = {name: values.get(name) for name in order if name not in zero}
        data = pretty(document, plus=self.saved.get("plus") is True)
        opens = "" if self.is_first else "sofos 0.4.3 or newer; an older one since 0.2.8 drops what it does not know"
        files = [OutputFile(f"{id}.json", data)]
        return Rendered(id=id, files=files, lost=self.tally.losses(), opens=opens, about=row_of(document))

    def values(self, leading: list[Message], messages: list[Message]) -> dict[str, Any]:
        names, model, display = listed(self.saved.get("keys")), self.model(), self.display()
        values: dict[str, Any] = {"id": self.id(), "api_messages": self.api(messages)}
        if display or "display_messages" in names:
            values["display_messages"] = display
        values["system_prompt"] = self.system(leading)
        values.update(zip(("created_at", "updated_at"), self.times(), strict=True))
        values.update(self.counters(model, messages).json())
        newer = [("model", model), *self.modes()]
        if self.is_first:
            cost = values.pop("total_cost", None)
            self.tally.add("reported cost", "", int(cost is not None))
            self.tally.add("model", "the one sofos would choose", int(model is not None))
            self.tally.add("fact", "", sum(value is not None for _, value in newer[1:]))
            newer = []
        for name, value in newer:
            if value is not None or name in names:
                values[name] = value
        return {**values, **fields(self.saved.get("more"))}

    def id(self) -> str:
        source_id = self.transcript.source_id
        if self.is_ours and shape.is_id(source_id):
            return source_id
        return f"session_{max(0, round(self.transcript.created.timestamp() * 1000))}_{short_id(self.transcript.id)}"

    def is_changed(self) -> bool:
        """Whether the conversation went on since the file was last read."""
        return any(entry.seq > self.mark for entry in self.transcript.path)

    def times(self) -> tuple[int, int]:
        created, updated = self.saved.get("created_at"), self.saved.get("updated_at")
        begin = created if isinstance(created, int) else max(0, int(self.transcript.created.timestamp()))
        if not isinstance(updated, int):
            updated = max(0, int(self.transcript.updated.timestamp()))
        elif self.is_changed():
            updated = max(updated, int(self.transcript.updated.timestamp()))
        return begin, updated

    def system(self, leading: list[Message]) -> list[Any]:
        instructions = self.facts.get("system")
        texts = [
            instructions if isinstance(instructions, str) else "",
            *(text_of(message.blocks) for message in leading),
        ]
        text = "\n\n".join(text for text in texts if text)
        if not self.is_ours:  # a compaction hides messages that a prompt begins with, and the prompt stays
            text = self.transcript.context.system or text
        kept = self.facts.get("sofos.system") if self.is_ours else None
        if isinstance(kept, list) and shape.system_text(kept) == text:
            return cast("list[Any]", kept)
        return shape.system_list(text)

    def model(self) -> str | None:
        named = self.facts.get("model")
        answered = [message.model for message in self.transcript.path if isinstance(message, Message) and message.model]
        model = named if isinstance(named, str) else answered[-1] if answered else None
        if model is None or self.is_ours or model.startswith("claude") or shape.counts_cached(model, ()):
            return model
        self.tally.add("model", "the one sofos would choose")  # it refuses to resume with one of another provider
        return None

    def modes(self) -> list[tuple[str, Any]]:
        names = ("readonly", "permission_preset")
        return [(name, self.facts.get(name) if self.is_ours else None) for name in names]

    def counters(self, model: str | None, messages: list[Message]) -> Counters:
        """As they were read, and what was spent since."""
        # Without a model in the file, a reader goes by what is there of its reasoning.
        includes = shape.counts_cached(None if self.is_first else model, messages)
        raw = self.saved.get("counters") if not self.transcript.is_free else None
        if isinstance(raw, dict):
            counters = Counters.of(fields(raw))
            for seq, usage in self.spent:
                if seq > self.mark and usage != Usage():
                    if counters.cost is not None and usage.cost_micros is None:
                        self.tally.add("cost of a response", "what the others cost")
                    counters.spend(usage, usage.all_input_tokens, includes)
            return counters
        counters, report = Counters(), self.transcript.usage
        counters.spend(report.own + report.inherited, report.peak_input_tokens, includes)
        if any(isinstance(entry, Message) and entry.usage for entry in self.transcript.path):
            self.tally.add("usage of single messages", "the totals")
        return counters

    def api(self, messages: list[Message]) -> list[dict[str, Any]]:
        own = [is_of(message, AGENT) for message in messages]
        if not any(own):
            messages = repair(messages)
        elif not all(own):
            messages = _answered(messages)
        api: list[dict[str, Any]] = []
        last: Message | None = None
        for message in messages:
            origin = self.origin(message)
            blocks = self.blocks(message, origin)
            follows = message.role == "tool" and last is not None and last.role == "tool"
            joins = bool(origin.get("joins")) if origin else follows  # results in a row are said in one message
            last = message
            if joins and api and isinstance(api[-1]["content"], list):
                api[-1]["content"] += blocks
                continue
            if not blocks and message.blocks:
                continue  # nothing of it could be said
            content: Any = blocks
            is_plain = shape.is_plain(message.role, message.blocks)
            if origin.get("form", "text" if is_plain else "blocks") == "text" and len(blocks) == 1:
                content = blocks[0].get("text", "")
            role = shape.role_of(message.role)
            if role == "system" and not origin:
                self.tally.add("system message within the conversation", "a message of the user")
                role = "user"
            api.append(apply({"role": role, "content": content}, origin.get("message")))
        return api

    def origin(self, message: Message) -> dict[str, Any]:
        """What is known of how it was written, if it still is what was written then."""
        if not is_of(message, AGENT):
            return {}
        origin = self.by_seq.get(message.seq)
        if isinstance(origin, Message) and origin.blocks != message.blocks:
            return {"agent": AGENT}
        return cast("dict[str, Any]", message.origin)

    def blocks(self, message: Message, origin: dict[str, Any]) -> list[dict[str, Any]]:
        patches = fields(origin.get("blocks"))
        blocks: list[dict[str, Any]] = []
        for index, block in enumerate(message.blocks):
            raw = json_of(block, self.tally, ours=bool(origin))
            if raw is not None:
                blocks.append(apply(raw, patches.get(str(index))))
        return blocks

    def display(self) -> list[Any]:
        """What was shown when it was last read, and what was said since."""
        mark = self.mark if "sofos.display" in self.facts else 0
        displays: list[Any] = []
        if mark:
            before = seen_on([entry for entry in self.transcript.path if entry.seq <= mark])
            displays = shape.lengthened(self.facts.get("sofos.display"), shape.shown(before))
        messages = [entry for entry in self.transcript.path if isinstance(entry, Message)]
        calls = {block.id: block for message in messages for block in message.blocks if isinstance(block, ToolCall)}
        return displays + shape.shown([message for message in messages if message.seq > mark], calls)


def _answered(messages: list[Message]) -> list[Message]:
    """A result for every call that never got one, behind the message that made it; all else as it is."""
    waiting = {id(call) for call in pending(messages)}
    answered: list[Message] = []
    for message in messages:
        answered.append(message)
        calls = [block for block in message.blocks if id(block) in waiting]
        results: list[Any] = [
            ToolResult(call=call.id, name=call.name, content=INTERRUPTED, is_error=True)
            for call in cast("list[Any]", calls)
        ]
        if results:
            answered.append(Message(role="tool", blocks=results))
    return answered
