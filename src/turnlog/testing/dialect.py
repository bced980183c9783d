"""The contract of a dialect, as tests that any dialect inherits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, ClassVar, cast

import msgspec
import pytest

import turnlog
from turnlog import Context, File, Image, Message, Session, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.errors import Invalid
from turnlog.log.draft import STOPS
from turnlog.log.entry import Role
from turnlog.testing.build import PNG
from turnlog.wire import Deviation, Dialect, Feed, Request
from turnlog.wire import dialect as dialect_named

_DAMAGED_RESPONSES = 80
_RANDOM_CONVERSATIONS = 80
_TOOL: dict[str, Any] = {
    "name": "bash",
    "description": "Run a command.",
    "input_schema": {"type": "object", "properties": {}},
}


class DialectContract:
    """Every promise of `turnlog.wire`. Inherit it in a class whose name begins with `Test`.

    `name` is the dialect's; `dialect` is the module or object itself, for one that does not come with Turnlog.
    `response` is a whole response with text, a tool call and usage, and `events` the same one streamed. `conversation`
    is the field of a request that holds the messages. `options` are what a request needs beside its context, and
    `stream_options` what `Stream` needs.
    """

    name: ClassVar[str]
    dialect: ClassVar[Dialect | None] = None
    conversation: ClassVar[str] = "messages"
    options: ClassVar[dict[str, Any]] = {}
    stream_options: ClassVar[dict[str, Any]] = {}
    response: ClassVar[dict[str, Any]]
    events: ClassVar[list[dict[str, Any]]]

    @property
    def _dialect(self) -> Any:
        return self.dialect if self.dialect is not None else dialect_named(self.name)

    def _request(self, context: Context, **options: Any) -> Request:
        return self._dialect.request(context, **{"model": "a-model", **self.options, **options})

    def _streamed(self, events: list[dict[str, Any]]) -> Message:
        stream: Feed = self._dialect.Stream(**self.stream_options)
        for event in events:
            stream.feed(event)
        return stream.finish()

    @pytest.fixture
    def session(self) -> Iterator[Session]:
        """A session of its own."""
        with turnlog.open("memory:") as home, home.create() as session:
            yield session

    def _next_request(self, session: Session, message: Message) -> Request:
        """Return the request of a session after it got that answer."""
        session.user("go")
        session.append(message)
        for call in session.pending():
            session.tool_result(call, "done")
        session.user("and now?")
        return self._request(session.context())

    # ── requests ──────────────────────────────────────────────────────────────────────────────────

    def test_it_says_whose_it_is(self) -> None:
        assert isinstance(self._dialect.PROVIDER, str) and self._dialect.PROVIDER

    def test_a_context_without_messages_is_refused(self) -> None:
        with pytest.raises(Invalid):
            self._request(Context([]))

    def test_a_request_is_plain_json_and_always_the_same(self, session: Session) -> None:
        for _ in _conversation(session):
            first, second = self._request(session.context()), self._request(session.context())
            assert json.dumps(first) == json.dumps(second)
            assert first.report == second.report

    def test_what_was_said_is_in_the_request(self, session: Session) -> None:
        for _ in _conversation(session):
            pass
        text = json.dumps(self._request(session.context()), ensure_ascii=False)
        for phrase in ("Be careful.", "hello «wörld»", "I look.", "ls -l", "two files", "no such file", "thanks"):
            assert phrase in text, phrase
        assert "bash" in text and "a-model" in text

    def test_what_was_sent_once_is_sent_the_same_way_again(self, session: Session) -> None:
        """Caches hit, and signatures stay valid."""
        earlier = ""
        for _ in _conversation(session):
            sent = json.dumps(self._request(session.context())[self.conversation])
            assert sent.startswith(earlier[:-1])
            assert len(sent) > len(earlier)
            earlier = sent

    def test_reasoning_of_others_stays_at_home_and_the_report_says_so(self) -> None:
        theirs = Thinking(text="SECRET", provider="somebody-else", data={"signature": "SECRET"})
        context = Context([_user("go"), Message(role="assistant", blocks=[theirs, Text(text="so")]), _user("on")])
        request = self._request(context)
        assert "SECRET" not in json.dumps(request)
        assert [one.what for one in request.report if one.change == "left out"] == ["thinking"]

    def test_what_another_account_may_not_see_is_left_out(self, session: Session) -> None:
        session.user("go")
        message = self._dialect.draft(self.response, account="acme")
        tagged = {"account": "acme", "signature": "SECRET"}
        thought = Thinking(text="SECRET", provider=self._dialect.PROVIDER, data=tagged)
        session.append(msgspec.structs.replace(message, blocks=[thought, *message.blocks]))
        for call in session.pending():
            session.tool_result(call, "done")
        ours, theirs = (self._request(session.context(), account=account) for account in ("acme", "rival"))
        assert "SECRET" not in json.dumps(theirs)
        assert "thinking" in [one.what for one in theirs.report if one.change == "left out"]
        assert len(theirs.report) >= len(ours.report)
        assert "acme" not in json.dumps(ours) + json.dumps(theirs)

    def test_what_no_provider_takes_is_reported(self) -> None:
        odd = UnknownBlock(kind="hologram", json='{"type":"hologram","secret":1}')
        request = self._request(Context([Message(role="user", blocks=[Text(text="see"), odd], seq=3)]))
        assert "secret" not in json.dumps(request)
        assert [(one.change, one.what, one.entry) for one in request.report] == [("left out", "hologram", 3)]

    def test_any_conversation_gives_a_request(self) -> None:
        """Whoever begins, whatever was answered, however odd its ids are."""
        chance = random.Random(7)
        for _ in range(_RANDOM_CONVERSATIONS):
            context = Context([_any_message(chance, seq) for seq in range(1, chance.randrange(2, 7))])
            request = self._request(context)
            json.dumps(request)
            assert request[self.conversation]
            for one in request.report:
                assert isinstance(one, Deviation)
                assert one.change in ("left out", "changed", "added") and one.what and one.why

    # ── responses ─────────────────────────────────────────────────────────────────────────────────

    def test_a_response_is_one_message(self) -> None:
        message = self._dialect.draft(self.response)
        assert message.role == "assistant" and message.stop in STOPS and message.seq == 0
        assert any(isinstance(block, Text) for block in message.blocks)
        assert any(isinstance(block, ToolCall) for block in message.blocks)
        assert message.usage is not None and message.usage.output_tokens > 0

    def test_a_response_may_be_the_sdks_object(self) -> None:
        assert _plain(self._dialect.draft(_Dumped(self.response))) == _plain(self._dialect.draft(self.response))

    def test_what_is_no_response_is_refused(self) -> None:
        for wrong in (None, "text", 5):
            with pytest.raises(Invalid):
                self._dialect.draft(wrong)

    def test_a_response_goes_into_a_log_and_back_to_the_provider(self, session: Session) -> None:
        message = self._dialect.draft(self.response)
        text = json.dumps(self._next_request(session, message), ensure_ascii=False)
        assert session.messages()[1].blocks == message.blocks
        for block in message.blocks:
            if isinstance(block, Text):
                assert block.text in text
            if isinstance(block, ToolCall) and block.by is None:
                assert block.name in text

    def test_a_damaged_response_is_read_as_far_as_it_goes_or_refused(self) -> None:
        chance = random.Random(7)
        read = 0
        for _ in range(_DAMAGED_RESPONSES):
            with turnlog.open("memory:") as home, home.create() as session:
                try:
                    message = self._dialect.draft(_damaged(self.response, chance))
                    json.dumps(self._next_request(session, message))
                except Invalid:
                    continue
                read += 1
        assert read > _DAMAGED_RESPONSES // 4

    # ── streams ───────────────────────────────────────────────────────────────────────────────────

    def test_a_whole_stream_is_the_response(self) -> None:
        assert _plain(self._streamed(self.events)) == _plain(self._dialect.draft(self.response))

    def test_events_of_a_later_version_are_passed_over(self) -> None:
        later = {"type": "of.a.later.version", "delta": {"type": "later"}}
        mixed = [event for each in self.events for event in (each, later)]
        assert _plain(self._streamed(mixed)) == _plain(self._dialect.draft(self.response))

    def test_broken_off_anywhere_it_gives_what_arrived(self) -> None:
        whole = self._dialect.draft(self.response)
        calls = _calls(whole)
        for end in range(len(self.events) + 1):
            message = self._streamed(self.events[:end])
            assert message.stop in ("aborted", whole.stop)
            assert _text(whole).startswith(_text(message))
            arrived = _calls(message)
            assert arrived == calls[: len(arrived)], "a call is there whole or not at all"
            with turnlog.open("memory:") as home, home.create() as session:
                json.dumps(self._next_request(session, message))

    def test_a_stream_that_is_given_its_request_has_the_names_of_the_log(self) -> None:
        """What a provider does not take as a name or an id is a digest in the request, and in the answer to it."""
        # The same conversation is requested with a plain call and with an odd one. What the second request has in the
        # place of the plain name and id is how the provider knows them, so it answers with these.
        plain, odd = (self._request(_with_call(*names)) for names in (("call_7", "bash"), (_ODD_ID, _ODD_NAME)))
        sent_name = _counterpart(plain, odd, "bash") or _ODD_NAME
        sent_id = _counterpart(plain, odd, "call_7") or _ODD_ID
        call = next(block for block in _calls(self._dialect.draft(self.response)) if block.by is None)
        stream: Feed = self._dialect.Stream(**{**self.stream_options, "request": odd})
        assert not stream.is_begun
        for event in _renamed(self.events, {call.name: sent_name, call.id: sent_id}):
            stream.feed(event)
        assert stream.is_begun
        received = next(block for block in _calls(stream.finish()) if block.by is None)
        assert received.name == _ODD_NAME
        assert received.id in (_ODD_ID, call.id), "a provider without ids has ours"

    def test_a_stream_without_events_was_aborted(self) -> None:
        message = self._streamed([])
        assert (message.stop, message.blocks) == ("aborted", [])


_ODD_NAME, _ODD_ID = "mcp.files/" + "x" * 130, "call|" + "y" * 130


def _calls(message: Message) -> list[ToolCall]:
    return [block for block in message.blocks if isinstance(block, ToolCall)]


def _with_call(id: str, name: str) -> Context:
    call = Message(role="assistant", blocks=[ToolCall(id=id, name=name, input={})], seq=2)
    result = Message(role="tool", blocks=[ToolResult(call=id, name=name, content="ok")], seq=3)
    return Context([_user("go"), call, result, _user("on")])


def _counterpart(one: Any, other: Any, said: str) -> str | None:
    """Return the text in one request at the place where another has `said`; None if there is none."""
    if isinstance(one, str):
        return other if one == said and isinstance(other, str) else None
    return next(
        (text for pair in _pairs(one, other) if (text := _counterpart(pair[0], pair[1], said)) is not None), None
    )


def _pairs(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """Return the values at the same places of two objects or lists."""
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return [(first[key], second[key]) for key in first if key in second]
    if isinstance(one, list) and isinstance(other, list):
        return list(zip(cast("list[Any]", one), cast("list[Any]", other), strict=False))
    return []


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(item, names) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


class _Dumped:
    """A response as SDKs give it: an object that can be dumped."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._data


def _user(text: str) -> Message:
    return Message(role="user", blocks=[Text(text=text)])


def _plain(message: Message) -> dict[str, Any]:
    """A message without the id that a draft gets when it is made."""
    return {name: value for name, value in msgspec.structs.asdict(message).items() if name != "id"}


def _text(message: Message) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, Text))


def _conversation(session: Session) -> Iterator[None]:
    """A conversation, stopping wherever a request would be made."""
    session.set("system", "Be careful.")
    session.set("tools", [_TOOL])
    session.user("hello «wörld»")
    yield
    call = ToolCall(id="call_1", name="bash", input={"command": "ls -l"})
    session.append(Message(role="assistant", blocks=[Text(text="I look."), call]))
    session.tool_result("call_1", "two files")
    yield
    twice: list[Any] = [ToolCall(id="functions.bash:0", name="bash", input={"command": name}) for name in ("a", "b")]
    session.append(Message(role="assistant", blocks=twice))
    session.tool_result("functions.bash:0", "no such file", is_error=True)
    session.tool_result("functions.bash:0", "one")
    yield
    session.append(Message(role="assistant", blocks=[Text(text="done")]))
    session.user([Text(text="thanks"), Image(data=PNG)])
    yield


def _any_message(chance: random.Random, seq: int) -> Message:
    role: Role = chance.choice(["user", "assistant", "assistant", "tool", "system"])
    name = chance.choice(["1", "call_9|fc_9", "functions.bash:0", "é", "a" * 200])
    media: list[Any] = [Image(data=PNG), Image(url="file:///etc/passwd"), File(data=b"PK"), File()]
    texts: list[Any] = [Text(text=chance.choice(["", " ", "hello", "🎈"])) for _ in range(chance.randrange(3))]
    if role == "tool":
        blocks: list[Any] = [ToolResult(call=name, content=chance.choice(["", "ok", [*texts, *media[:1]]]))]
    elif role == "assistant":
        thought = Thinking(text="hm", provider=chance.choice([None, "elsewhere"]), data=chance.choice([None, [1]]))
        inputs: list[Any] = [{}, {"a": 1}, 5]
        tool = chance.choice(["bash", "mcp.files/list", "9lives"])
        call = ToolCall(id=name, name=tool, input=chance.choice(inputs))
        blocks = [*texts, *chance.sample([thought, call, *media], 2)]
    else:
        blocks = [*texts, Text(text="so"), *(chance.sample(media, 1) if role == "user" else [])]
    return Message(role=role, blocks=blocks, seq=seq)


def _damaged(value: Any, chance: random.Random) -> Any:
    """A response in which something is not what it should be."""
    odd = chance.choice([None, 5, -1, "", "x", [], {}, [None], {"type": 7}, True])
    if isinstance(value, dict) and value:
        fields: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        name = chance.choice(sorted(fields))
        fields[name] = odd if chance.random() < 0.3 else _damaged(fields[name], chance)
        return fields
    if isinstance(value, list) and value:
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        at = chance.randrange(len(items))
        items[at] = odd if chance.random() < 0.3 else _damaged(items[at], chance)
        return items
    return odd
