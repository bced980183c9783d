"""What the model should see: a pure function of the path to the head, read newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound, TurnlogError
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, answered_by, calls_in
from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Role, Uncompact
from turnlog.log.shown.nativecompaction import answered_head
from turnlog.log.shown.tokens import Tokens, estimate, tokens_of

INTERRUPTED = "[no result: the tool call was interrupted]"


class StaleSpan(NamedTuple):
    """Messages from `start` up to `end` (by `seq`) were produced under another prompt than they follow now."""

    start: int
    end: int
    cause: str
    """The id of the entry that changed it."""


class Context(Sequence[Message]):
    """The messages for a model, oldest first, with the system prompt and the tools that go with them."""

    __slots__ = {  # noqa: RUF023 - with what each is, for `help()`
        "messages": "The messages themselves; the context is a sequence of them.",
        "system": "The system prompt: the fact `system` and the system messages at the beginning.",
        "tools": "The tools that the fact `tools` declares.",
        "get_blob": "Fetches the pictures and files that the messages refer to.",
        "head": "The `seq` of the entry up to which it was made; 0 where there was none.",
        "head_id": "The id of that entry.",
        "root": "The first entry id of the session at the root of all forks; empty for a context of no session.",
        "edited": "The `seq`s of entries that read otherwise than they were said.",
        "_stale": "",
        "_tokens": "",
    }

    def __init__(
        self,
        messages: list[Message],
        *,
        system: str = "",
        tools: list[Any] | None = None,
        get_blob: Callable[[str], bytes] | None = None,
        stale: list[StaleSpan] | None = None,
        head: int = 0,
        head_id: str = "",
        edited: Iterable[int] = (),
        root: str = "",
    ) -> None:
        self.messages = messages
        self.system = system
        self.tools: list[Any] = [] if tools is None else tools
        self.get_blob = get_blob
        self._stale = stale or []
        self.head = head
        self.head_id = head_id
        self.root = root
        self.edited = frozenset(edited)
        self._tokens: Tokens | None = None

    @property
    def tokens(self) -> Tokens:
        """About how many tokens this is for a model, and by which method that was found."""
        return self._tokens or estimate(self.messages, self.system, self.tools, self.is_stale, self.stands_for)

    @property
    def cache_key(self) -> str:
        """What a provider may group requests by that begin alike: one for a session and its forks, wherever they are.

        A digest, because the id of a session may say something private. Empty where the context is of no session.
        """
        from turnlog.log.digest import sha256

        return sha256(b"turnlog cache key " + self.root.encode()).hexdigest()[:32] if self.root else ""

    def load(self) -> None:
        """Fetch every picture and file, and count the tokens: a request made of it asks nobody any more."""
        self._tokens = self.tokens
        if self.get_blob is None:
            return
        contents: dict[str, bytes | TurnlogError] = {}
        for digest in {digest for message in self.messages for digest in _attached(message.blocks)}:
            try:
                contents[digest] = self.get_blob(digest)
            except (NotFound, Corrupt) as error:
                contents[digest] = error  # told when it is asked for: the rest can be sent

        def get(digest: str) -> bytes:
            data = contents.get(digest)
            if isinstance(data, bytes):
                return data
            raise data or NotFound(f"no blob {digest} in this context", hint="session.blob fetches any other")

        self.get_blob = get

    def plus(self, content: str | Sequence[AnyBlock], *, role: Role = "user") -> Context:
        """The same with something said at its end that no log knows: to ask for a summary or a title."""
        if not isinstance(content, (str, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"text or a list, not {content!r:.80}")
        blocks: list[AnyBlock] = [Text(content)] if isinstance(content, str) else list(content)
        said = Message(role=role, blocks=blocks)
        more = Context(
            [*self.messages, said],
            system=self.system,
            tools=self.tools,
            get_blob=self.get_blob,
            stale=self._stale,
            head=self.head,
            head_id=self.head_id,
            edited=self.edited,
            root=self.root,
        )
        if self._tokens is not None:  # what is there was counted, elsewhere: an event loop may be at work here
            more._tokens = Tokens(self._tokens + tokens_of(said), self._tokens.method)
        return more

    def is_stale(self, message: Message) -> bool:
        """Whether what comes before that message was another when it was said: a compaction or an edit came since."""
        return any(span.start <= message.seq < span.end for span in self._stale)

    def stands_for(self, block: Thinking, message: Message) -> int | None:
        """Up to which `seq` what a provider compacted stands for what was said; None where it does not any more."""
        if self.is_stale(message):
            return None
        seen = answered_head(block)
        if seen is None:
            return message.seq
        there = [span.end for span in self._stale if span.cause == seen]
        there += [one.seq for one in self.messages if one.id == seen]
        last = max(there, default=0)
        was_known = 0 < last < message.seq  # otherwise it answers another branch
        is_cut = any(span.start <= last + 1 and last < span.end for span in self._stale)
        return last if was_known and not is_cut else None

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self.messages[index]

    def __repr__(self) -> str:
        return f"Context({len(self)} messages, system of {len(self.system)} characters)"


def _attached(blocks: Iterable[AnyBlock]) -> Iterator[str]:
    """The blobs of pictures and files, also of those in results."""
    for block in blocks:
        if isinstance(block, (Image, File)) and block.blob is not None and block.data is None:
            yield block.blob
        elif isinstance(block, ToolResult) and not isinstance(block.content, str):
            yield from _attached(block.content)


def newest_known(context: Context, path: Iterable[Entry], its_path: Iterable[Entry]) -> int:
    """The `seq` of the newest node on a path that a context knew, itself or in a summary; 0 if it knew none.

    `its_path` is the one it was made of, both newest first. Where that is not known, what it showed has to tell.
    """
    visible = {message.id for message in context}
    others = iter(its_path)
    other = next(others, None)
    for node in path:
        while other is not None and other.seq > node.seq:
            other = next(others, None)
        if node.id in visible or (other is not None and other.seq == node.seq):
            return node.seq
    return 0


def visible(path: Iterable[Entry], find: Callable[[int], Entry | None]) -> tuple[list[Message], list[Message]]:
    """The messages on a path (newest first) as edits leave them, oldest first: what a compaction put in, and the rest.

    Reads no more of the path than it needs: nothing below the first entry that the newest compaction keeps.
    """
    cancelled: set[int] = set()
    edits: dict[int, list[AnyBlock] | None] = {}
    compaction: Compaction | None = None
    kept: list[Message] = []
    for entry in path:
        if compaction is not None and (compaction.keep == 0 or entry.seq < compaction.keep):
            break
        if isinstance(entry, (Message, Custom)):
            message = _edited(entry, edits)
            if message is not None:
                kept.append(message)
        elif isinstance(entry, Uncompact):
            cancelled.add(entry.compaction)
        elif isinstance(entry, Edit):
            edits.setdefault(entry.entry, entry.blocks)
        elif isinstance(entry, Compaction) and compaction is None and entry.seq not in cancelled:
            compaction = entry
            if entry.keep == 0:
                break
    kept.reverse()
    replaced: list[Message] = []
    for item in [] if compaction is None else compaction.replacement:
        entry = item if isinstance(item, Message) else find(item.entry)
        message = _edited(entry, edits) if isinstance(entry, (Message, Custom)) else None
        if message is not None:
            replaced.append(message)
    return replaced, kept


def _edited(entry: Message | Custom, edits: dict[int, list[AnyBlock] | None]) -> Message | None:
    """What a model sees of an entry, if anything."""
    message = spoken(entry)
    if message is not None and message.seq in edits:
        blocks = edits[message.seq]
        return None if blocks is None else replace(message, blocks=blocks)
    return message


def spoken(entry: Message | Custom) -> Message | None:
    """An entry as a message; None for a custom one that says nothing."""
    if isinstance(entry, Message):
        return entry
    if not entry.blocks:
        return None
    return Message(
        role=entry.role, blocks=entry.blocks, id=entry.id, seq=entry.seq, at=entry.at, parent=entry.parent,
        turn=entry.turn, meta=entry.meta,
    )  # fmt: skip


def stale_spans(path: Iterable[Entry]) -> list[StaleSpan]:
    """The spans of a path (newest first) whose messages were produced under another prompt than they follow now.

    An edit changes what came before the messages between it and its entry, a compaction what came before all
    that it keeps, and taking one back what came before the messages said under it.
    """
    spans: list[StaleSpan] = []
    cancelled: set[int] = set()
    for entry in path:
        if isinstance(entry, Edit):
            spans.append(StaleSpan(entry.entry + 1, entry.seq, entry.id))
        elif isinstance(entry, Uncompact):
            cancelled.add(entry.compaction)
            spans.append(StaleSpan(entry.compaction, entry.seq, entry.id))
        elif isinstance(entry, Compaction) and entry.seq not in cancelled:
            spans.append(StaleSpan(0, entry.seq, entry.id))
    return spans


def split_system(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """The system messages a conversation begins with, and the rest."""
    for index, message in enumerate(messages):
        if message.role != "system":
            return messages[:index], messages[index:]
    return messages, []


def text_of(blocks: Iterable[AnyBlock]) -> str:
    """The text in these blocks."""
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _calls(message: Message) -> list[ToolCall]:
    return calls_in(message.blocks) if message.role == "assistant" else []


def unanswered(messages: Iterable[Message]) -> list[tuple[Message, ToolCall]]:
    """Tool calls without a result, oldest first, each with the message that it is in."""
    listed = list(messages)
    waiting: list[tuple[int, ToolCall]] = []
    for position, message in enumerate(listed):
        if message.role == "tool":
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    _answer(waiting, block.call)
        else:
            waiting.extend((position, call) for call in _calls(message))
    return [(listed[position], call) for position, call in waiting]


def pending(messages: Iterable[Message]) -> list[ToolCall]:
    """Tool calls without a result, oldest first."""
    return [call for _, call in unanswered(messages)]


def _answer(waiting: list[tuple[int, ToolCall]], call: str) -> tuple[int, ToolCall] | None:
    """Take out the waiting call that a result for `call` answers: with the position of its message."""
    index = answered_by(call, [(position, one.id) for position, one in waiting])
    return None if index is None else waiting.pop(index)


def repair(messages: list[Message]) -> list[Message]:
    """Every tool call followed by exactly one result, every result by its call; nothing else changed."""
    if _is_sound(messages):
        return [message for message in messages if message.blocks]
    answers: dict[int, tuple[Message, ToolResult]] = {}
    waiting: list[tuple[int, ToolCall]] = []
    extras: dict[int, Message] = {}
    for index, message in enumerate(messages):
        if message.role != "tool":
            waiting.extend((index, call) for call in _calls(message))
            continue
        rest: list[AnyBlock] = []
        for block in message.blocks:
            if not isinstance(block, ToolResult):
                rest.append(block)
                continue
            answered = _answer(waiting, block.call)
            if answered is not None:
                answers[id(answered[1])] = (message, block)
        if rest:
            extras[index] = replace(message, role="user", blocks=rest)
    whole: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            if index in extras:
                whole.append(extras[index])
            continue
        if not message.blocks:
            continue
        whole.append(message)
        for call in _calls(message):
            answered = answers.get(id(call))
            if answered is None:
                result = ToolResult(call=call.id, content=INTERRUPTED, is_error=True, name=call.name)
                whole.append(Message(role="tool", blocks=[result], id=f"{message.id}:{call.id}"))
            elif answered[0].blocks == [answered[1]]:
                whole.append(answered[0])
            else:
                whole.append(replace(answered[0], blocks=[answered[1]]))
    return whole


def _is_sound(messages: list[Message]) -> bool:
    """Whether every call is answered at once, in messages of results only: the usual case, left as it is."""
    open_calls: set[str] = set()
    for message in messages:
        if message.role == "tool":
            for block in message.blocks:
                if not isinstance(block, ToolResult) or block.call not in open_calls:
                    return False
                open_calls.discard(block.call)
            continue
        if open_calls:
            return False
        calls = [call.id for call in _calls(message)]
        open_calls.update(calls)
        if len(open_calls) != len(calls):
            return False
    return not open_calls


def cut_for_keep(messages: list[Message], keep: int, *, seen: int | None = None) -> int:
    """The `seq` of the first message that stays when the last `keep` stay, with no call parted from its result.

    Whatever came after entry `seen` stays as well. 0 if none stays. Messages without a `seq` (a summary) are never
    kept: a new summary stands for them.
    """
    own = [message for message in messages if message.seq]
    index = max(0, len(own) - keep)
    if seen is not None:
        index = min(index, sum(message.seq <= seen for message in own))
    waiting: list[tuple[int, ToolCall]] = []
    pairs: list[tuple[int, int]] = []
    for position, message in enumerate(own):
        if message.role != "tool":
            waiting.extend((position, call) for call in _calls(message))
            continue
        for block in message.blocks:
            answered = _answer(waiting, block.call) if isinstance(block, ToolResult) else None
            if answered is not None:
                pairs.append((answered[0], position))
    speakers = [position for position, message in enumerate(own) if message.role != "tool"]
    # Calls of the newest message may still be answered; older unanswered ones never will be.
    pairs.extend((position, len(own)) for position, _ in waiting if position == speakers[-1])
    for call_at, result_at in sorted(pairs, reverse=True):
        if call_at < index <= result_at:
            index = call_at
    return own[index].seq if index < len(own) else 0
