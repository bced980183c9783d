"""The context that a model should see: a pure function of the path to the head, read newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound, TurnlogError
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolResult
from turnlog.log.context.nativecompaction import answered_head
from turnlog.log.context.tokens import Tokens, estimate, tokens_of
from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Role, Uncompact
from turnlog.log.startup import NamedTuple


class StaleSpan(NamedTuple):
    """Messages with a `seq` from `start` to below `end` were produced under a different prompt than they follow now."""

    start: int
    end: int
    cause: str
    """The id of the entry that changed the prompt."""


class Context(Sequence[Message]):
    """The messages for a model, oldest first, with the system prompt and the tools that go with them."""

    __slots__ = {  # noqa: RUF023 - with what each is, for `help()`
        "messages": "The messages themselves; the context is a sequence of them.",
        "system": "The system prompt: the fact `system` and the system messages at the beginning.",
        "tools": "The tools that the fact `tools` declares.",
        "get_blob": "Fetches the pictures and files that the messages refer to.",
        "head": "The `seq` of the entry that it was made up to; 0 if there was none.",
        "head_id": "The id of that entry.",
        "root": "The first entry id of the session at the root of all forks; empty for a context of no session.",
        "edited": "The `seq`s of entries whose content was replaced by an edit.",
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
        """The estimated number of tokens for a model, and the method of the estimate."""
        return self._tokens or estimate(self.messages, self.system, self.tools, self.is_stale, self.stands_for)

    @property
    def cache_key(self) -> str:
        """The key by which a provider may group requests with a common beginning. A session and its forks share it.

        A digest, because the id of a session may say something private. Empty where the context is of no session.
        """
        from turnlog.log.digest import sha256

        return sha256(b"turnlog cache key " + self.root.encode()).hexdigest()[:32] if self.root else ""

    def load(self) -> None:
        """Load every picture and file, and count the tokens: building a request then needs no store."""
        self._tokens = self.tokens
        if self.get_blob is None:
            return
        contents: dict[str, bytes | TurnlogError] = {}
        for digest in {digest for message in self.messages for digest in _attached(message.blocks)}:
            try:
                contents[digest] = self.get_blob(digest)
            except (NotFound, Corrupt) as error:
                contents[digest] = error  # raised when that blob is requested: the rest can be sent

        def get(digest: str) -> bytes:
            data = contents.get(digest)
            if isinstance(data, bytes):
                return data
            raise data or NotFound(f"no blob {digest} in this context", hint="session.blob fetches any other")

        self.get_blob = get

    def plus(self, content: str | Sequence[AnyBlock], *, role: Role = "user") -> Context:
        """Return this context with one more message that is in no log: to ask for a summary or a title."""
        if not isinstance(content, (str, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"text or a list, not {content!r:.80}")
        blocks: list[AnyBlock] = [Text(content)] if isinstance(content, str) else list(content)
        message = Message(role=role, blocks=blocks)
        more = Context(
            [*self.messages, message],
            system=self.system,
            tools=self.tools,
            get_blob=self.get_blob,
            stale=self._stale,
            head=self.head,
            head_id=self.head_id,
            edited=self.edited,
            root=self.root,
        )
        if self._tokens is not None:  # only the new message is counted: this may run on an event loop
            more._tokens = Tokens(self._tokens + tokens_of(message), self._tokens.method)
        return more

    def is_stale(self, message: Message) -> bool:
        """Whether a compaction or an edit changed what comes before that message since it was produced."""
        return any(span.start <= message.seq < span.end for span in self._stale)

    def stands_for(self, block: Thinking, message: Message) -> int | None:
        """Return the last `seq` that a provider's compaction stands for; None if it is no longer valid."""
        if self.is_stale(message):
            return None
        head_id = answered_head(block)
        if head_id is None:
            return message.seq
        head_seqs = [span.end for span in self._stale if span.cause == head_id]
        head_seqs += [one.seq for one in self.messages if one.id == head_id]
        last = max(head_seqs, default=0)
        is_on_this_path = 0 < last < message.seq  # otherwise it answers another branch
        has_changed_since = any(span.start <= last + 1 and last < span.end for span in self._stale)
        return last if is_on_this_path and not has_changed_since else None

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
    """Yield the blobs of pictures and files, including those in results."""
    for block in blocks:
        if isinstance(block, (Image, File)) and block.blob is not None and block.data is None:
            yield block.blob
        elif isinstance(block, ToolResult) and not isinstance(block.content, str):
            yield from _attached(block.content)


def newest_known(context: Context, path: Iterable[Entry], its_path: Iterable[Entry]) -> int:
    """Return the `seq` of the newest node on a path that a context contains, directly or in a summary; 0 for none.

    `its_path` is the path that the context was made from; both paths are newest first. If it is unknown (empty), only
    the messages of the context decide.
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
    """Return the messages on a path (newest first) with edits applied, oldest first: a compaction's, and the rest.

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
    """Return the message that a model sees for an entry, or None."""
    message = spoken(entry)
    if message is not None and message.seq in edits:
        blocks = edits[message.seq]
        return None if blocks is None else replace(message, blocks=blocks)
    return message


def spoken(entry: Message | Custom) -> Message | None:
    """Return an entry as a message; None for a custom entry without blocks."""
    if isinstance(entry, Message):
        return entry
    if not entry.blocks:
        return None
    return Message(
        role=entry.role, blocks=entry.blocks, id=entry.id, seq=entry.seq, at=entry.at, parent=entry.parent,
        turn=entry.turn, meta=entry.meta,
    )  # fmt: skip


def stale_spans(path: Iterable[Entry]) -> list[StaleSpan]:
    """Return the spans of a path (newest first) whose messages were produced under a different prompt.

    An edit changes the prompt of the messages between the edited entry and the edit, a compaction that of everything it
    keeps, and cancelling a compaction that of the messages produced under it.
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
    """Split messages into the system messages that the conversation begins with, and the rest."""
    for index, message in enumerate(messages):
        if message.role != "system":
            return messages[:index], messages[index:]
    return messages, []


def text_of(blocks: Iterable[AnyBlock]) -> str:
    """Return the text in these blocks."""
    return "\n".join(block.text for block in blocks if isinstance(block, Text))
