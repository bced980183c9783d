"""A session's entries as spans: a trace for each turn, in it what the model was asked and which tools ran."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Ask,
    Child,
    Compaction,
    Custom,
    Edit,
    Head,
    Message,
    Spent,
    Started,
    Turn,
)
from turnlog.log.fold import note_request
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.log.usage import Usage
from turnlog.view.otel import genai
from turnlog.view.otel.otlp import CLIENT, INTERNAL, SpanError, SpanEvent, TraceSpan, moved, span_id, trace_id
from turnlog.view.otel.toolspan import NEVER, FinishedSpans, ToolSpans, at_of, cover


class TracedSession(Struct, frozen=True):
    """The session that the spans belong to, and their parent span."""

    id: str
    conversation: str
    """The id in the spans: the agent's own id for an imported session."""
    agent: str | None
    under: TraceSpan | None = None
    """The call of a tool that started it, for a subagent."""


class _Arrival(NamedTuple):
    """When a node arrived, and whether it is an answer."""

    at: datetime
    is_answer: bool


class _Turn(Struct):
    span: TraceSpan
    chats: list[_Chat] = []
    is_ended: bool = False


class _Chat(Struct):
    """A request to a model, and the messages that its answer lies in."""

    span: TraceSpan
    asked: list[Message] = []
    answers: list[Message] = []
    usage: Usage | None = None


class SessionSpans:
    """Takes the own entries of a session, in order; `finish` has its spans then.

    `entry_at` finds one that is not among them. `shown` gives an entry as it may be shown. Places and ids come from the
    entries as they are, so that no two become one because a secret was removed.
    """

    def __init__(
        self,
        session: TracedSession,
        entry_at: Callable[[int], AnyEntry | None],
        shown: Callable[[AnyEntry], AnyEntry],
        *,
        has_content: bool,
    ) -> None:
        self._session = session
        self._entry_at = entry_at
        self._shown = shown
        self._has_content = has_content
        self._turns: dict[str, _Turn] = {}
        self._turn_of: dict[int, str] = {}
        self._nodes: dict[int, _Arrival] = {0: _Arrival(NEVER, is_answer=True)}
        self._last = ""
        self._chats: list[_Chat] = []
        self._requests: dict[str, _Chat] = {}
        self._paid: list[str] = []
        self._payments = 0
        self._tools = ToolSpans(session.id, session.conversation, has_content=has_content)
        self._asked: list[Message] = []
        self._moved = NEVER

    def take(self, entry: AnyEntry) -> None:
        """Take the next entry."""
        if entry.is_node:
            self._turn_of[entry.seq] = self._key(entry)
            self._nodes[entry.seq] = _arrival_of(entry)
        match entry:
            case Message():
                self._message(entry)
            case Custom() | Edit() if entry.blocks:
                self._take_custom(entry)
            case Compaction():
                self._compacted(entry)
            case Spent():
                self._payments += 1  # its id is another one whenever a total is read anew
                self._add_usage(entry, entry.usage, entry.why, f"#{self._payments}")
            case Turn():
                self._mark(entry)
            case Head():
                self._moved = at_of(entry)
            case Started():
                self._tools.started(entry)
            case Ask():
                self._tools.asked(entry)
            case Answer():
                self._tools.answered(entry, self._shown(entry))
            case Child():
                self._tools.spawned(entry, self._turn(entry).span)
            case _:
                pass

    def finish(self) -> FinishedSpans:
        """The spans of the session. A prompt alone is no turn yet."""
        tools = self._tools.finish()
        for chat in self._chats:
            self._finish_chat(chat)
        for turn in self._turns.values():
            self._finish_turn(turn)
        inner = [*(chat.span for chat in self._chats), *tools.spans]
        used = {span.parent_id for span in inner} | {span.id for span in tools.parents.values()}
        turns = [
            turn.span for turn in self._turns.values() if turn.is_ended or turn.span.events or turn.span.id in used
        ]
        return FinishedSpans(turns + inner, tools.parents)

    # ── turns ─────────────────────────────────────────────────────────────────────────────────────

    def _key(self, entry: AnyEntry) -> str:
        """The turn that an entry belongs to: the one it says, the one it begins, or that of what it follows on."""
        if entry.turn is not None:
            return entry.turn
        if isinstance(entry, Message) and is_prompt(entry):
            return entry.id
        return self._turn_of.get(entry.parent or 0) or self._last or entry.id

    def _turn(self, entry: AnyEntry) -> _Turn:
        key = self._turn_of.get(entry.seq) or self._key(entry)
        self._last = key
        if key not in self._turns:
            name, under, at = self._session.id, self._session.under, at_of(entry)
            trace = trace_id(name, "turn", key) if under is None else under.trace_id
            above = "" if under is None else under.id
            span = TraceSpan(trace, span_id(name, "turn", key), "invoke_agent", INTERNAL, at, at, above)
            self._turns[key] = _Turn(span)
        return self._turns[key]

    def _mark(self, entry: Turn) -> None:
        turn = self._turn(entry)
        if entry.state == "begin":
            return
        turn.is_ended = True
        turn.span.end = max(turn.span.end, at_of(entry))
        if entry.state != "completed":
            shown = self._shown(entry)
            error_text = shown.error if isinstance(shown, Turn) else None
            turn.span.error = SpanError("aborted" if entry.state == "aborted" else genai.OTHER_ERROR, error_text or "")

    def _finish_turn(self, turn: _Turn) -> None:
        agent = self._session.agent
        first = turn.chats[0].span.attributes if turn.chats else {}
        turn.span.name = f"invoke_agent {agent}" if agent else "invoke_agent"
        turn.span.attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": first.get("gen_ai.provider.name") or genai.provider_of(None, None),
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": self._session.conversation,
            "gen_ai.request.model": first.get("gen_ai.request.model"),
        }
        if not turn.is_ended and turn.chats:
            turn.span.error = turn.chats[-1].span.error

    # ── requests ──────────────────────────────────────────────────────────────────────────────────

    def _message(self, entry: Message) -> None:
        shown = self._shown(entry)
        assert isinstance(shown, Message)
        if entry.role == "assistant":
            self._answer(entry, shown)
            return
        if entry.role != "system":
            turn = self._turn(entry)
            turn.span.end = max(turn.span.end, at_of(entry))
            self._tools.results(entry, shown, self._began(entry), turn.span)
            if entry.usage is not None:
                self._add_usage(entry, entry.usage, None, entry.id)
        self._add_input(shown)

    def _add_input(self, shown: Message) -> None:
        """What the next request says that the one before did not."""
        if self._has_content and shown.blocks:
            self._asked.append(shown)

    def _answer(self, entry: Message, shown: Message) -> None:
        turn = self._turn(entry)
        chat = self._requests.get(entry.request) if entry.request is not None else None
        if chat is None:
            chat = self._chat(turn, f"chat {entry.id}", self._began(entry), at_of(entry))
            chat.asked, self._asked = self._asked, []
            if entry.request is not None:
                self._requests[entry.request] = chat
        if entry.began_at is None or entry.duration_ms is None:
            chat.span.end = max(chat.span.end, at_of(entry))
        else:
            chat.span.end = moved(entry.began_at, entry.duration_ms)
        chat.answers.append(shown)
        cover(turn.span, chat.span)
        if entry.usage is not None and note_request(self._paid, entry.request):
            chat.usage = (chat.usage or Usage()) + entry.usage
        self._tools.called(entry, entry.blocks, shown.blocks, turn.span)

    def _chat(self, turn: _Turn, key: str, start: datetime, end: datetime) -> _Chat:
        root = turn.span
        chat = _Chat(TraceSpan(root.trace_id, span_id(self._session.id, key), "chat", CLIENT, start, end, root.id))
        self._chats.append(chat)
        turn.chats.append(chat)
        return chat

    def _began(self, entry: Message | Compaction) -> datetime:
        """When the request was made; where nobody says, when there was something to ask."""
        at = at_of(entry)
        if isinstance(entry, Message) and entry.began_at is not None:
            return entry.began_at
        if isinstance(entry, Message) and entry.duration_ms:
            return moved(at, -entry.duration_ms)
        arrival = self._arrival(entry.parent or 0)
        return at if arrival.is_answer else min(at, max(arrival.at, self._moved))

    def _arrival(self, seq: int) -> _Arrival:
        """The arrival of a node, also of one of the parent of a fork."""
        if seq not in self._nodes:
            entry = self._entry_at(seq)
            self._nodes[seq] = _Arrival(NEVER, is_answer=True) if entry is None else _arrival_of(entry)
        return self._nodes[seq]

    def _compacted(self, entry: Compaction) -> None:
        turn = self._turn(entry)
        sizes: dict[str, Any] = {
            "turnlog.compaction.trigger": entry.trigger,
            "turnlog.compaction.tokens_before": entry.tokens_before,
            "turnlog.compaction.tokens_after": entry.tokens_after,
        }
        turn.span.events.append(SpanEvent(at_of(entry), "turnlog.compaction", sizes))
        if entry.usage is None or not note_request(self._paid, entry.request):
            return
        chat = self._chat(turn, f"chat {entry.id}", self._began(entry), at_of(entry))
        chat.usage = entry.usage
        shown = self._shown(entry)
        assert isinstance(shown, Compaction)
        summary = [block for one in shown.replacement if isinstance(one, Message) for block in one.blocks]
        chat.answers.append(Message(role="assistant", blocks=summary, model=shown.model, request=shown.request))
        chat.span.attributes["turnlog.spent.why"] = "compaction"

    def _add_usage(self, entry: Spent | Message, usage: Usage, why: str | None, key: str) -> None:
        """Usage that no answer reports: added to the previous request; with `why`, to a span of its own."""
        if not note_request(self._paid, entry.request) or usage == Usage():
            return
        turn = self._turn(entry)
        chat = self._requests.get(entry.request or "")
        if chat is None and why is None and turn.chats and turn.chats[-1].usage is None:
            chat = turn.chats[-1]
        if chat is None:
            chat = self._chat(turn, f"spent {key}", at_of(entry), at_of(entry))
            shown = self._shown(entry)
            assert isinstance(shown, (Spent, Message))
            chat.answers.append(Message(role="assistant", model=shown.model, request=shown.request))
            chat.span.attributes["turnlog.spent.why"] = shown.why if isinstance(shown, Spent) else None
        chat.usage = (chat.usage or Usage()) + usage

    def _finish_chat(self, chat: _Chat) -> None:
        message = _whole(chat)
        span = chat.span
        span.error = genai.failure(message)
        span.attributes |= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": genai.provider_of(message.provider, message.model),
            "gen_ai.conversation.id": self._session.conversation,
            **genai.request(message),
            **genai.response(message),
        }
        model = span.attributes.get("gen_ai.request.model")
        span.name = f"chat {model}" if model else "chat"
        if self._has_content:
            span.attributes["gen_ai.input.messages"] = genai.messages(chat.asked)
            answers = [message] if message.blocks else []
            span.attributes["gen_ai.output.messages"] = genai.messages(answers, is_output=True)

    def _take_custom(self, entry: Custom | Edit) -> None:
        shown = self._shown(entry)
        assert isinstance(shown, (Custom, Edit))
        blocks = shown.blocks or []
        if isinstance(shown, Custom):
            self._add_input(Message(role=shown.role, blocks=blocks))
        else:
            self._tools.called(entry, entry.blocks or [], blocks, self._turn(entry).span)


def _arrival_of(entry: AnyEntry) -> _Arrival:
    return _Arrival(at_of(entry), is_answer=isinstance(entry, Message) and entry.role == "assistant")


def _whole(chat: _Chat) -> Message:
    """The messages of an answer as one."""
    first, last = chat.answers[0], chat.answers[-1]
    return replace(
        last,
        blocks=[block for one in chat.answers for block in one.blocks],
        usage=chat.usage,
        model=next((one.model for one in chat.answers if one.model), None),
        stop=next((one.stop for one in reversed(chat.answers) if one.stop), None),
        error=next((one.error for one in chat.answers if one.error is not None), None),
        provider=next((one.provider for one in chat.answers if one.provider), None),
        options=next((one.options for one in chat.answers if one.options), None),
        first_token_ms=first.first_token_ms,
    )
