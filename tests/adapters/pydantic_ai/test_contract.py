"""What Pydantic AI asks of a conversation store, as it documents it: its own store in memory passes as well."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

from turnlog.adapters.pydantic_ai import TurnlogConversationStore

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=["theirs", "memory", "files"])
def store(request, tmp_path):
    if request.param == "theirs":
        yield InMemoryConversationStore()
    else:
        with TurnlogConversationStore("memory:" if request.param == "memory" else tmp_path) as store:
            yield store


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def told(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def texts(messages) -> list[str]:
    return [message.parts[0].content for message in messages]


async def saved(store, *words: str, id: str = "c1", **fields) -> Conversation:
    conversation = Conversation(conversation_id=id, messages=[asked(word) for word in words])
    await store.save(conversation, **fields)
    return conversation


# ── save and load ─────────────────────────────────────────────────────────────────────────────────


async def test_what_was_never_saved_is_none(store):
    assert await store.load("c1") is None
    assert await store.load_entries("c1") is None
    assert await store.read_record("c1") is None


async def test_what_was_saved_is_loaded(store):
    conversation = Conversation(conversation_id="c1", messages=[asked("hi"), told("hello")], usage=RunUsage(requests=1))
    await store.save(conversation)
    loaded = await store.load("c1")
    assert (loaded.messages, loaded.usage) == (conversation.messages, conversation.usage)
    assert loaded.revision == conversation.revision is not None


async def test_an_empty_conversation_can_be_saved(store):
    await saved(store)
    assert (await store.load("c1")).messages == []
    assert (await store.read_record("c1")).head_id is None


async def test_only_what_is_new_is_stored(store):
    conversation = await saved(store, "a")
    conversation.messages.append(told("b"))
    entries = await store.save(conversation)
    assert texts(entry.message for entry in entries) == ["b"]
    assert texts((await store.load("c1")).messages) == ["a", "b"]


async def test_a_loaded_conversation_goes_on(store):
    await saved(store, "a")
    loaded = await store.load("c1")
    loaded.messages.append(told("b"))
    await store.save(loaded)
    assert texts((await store.load("c1")).messages) == ["a", "b"]


async def test_usage_alone_is_saved(store):
    conversation = await saved(store, "a")
    conversation.usage = RunUsage(requests=3, input_tokens=10, details={"x": 1})
    assert await store.save(conversation) == []
    assert (await store.load("c1")).usage == conversation.usage


async def test_deferred_requests_come_back_with_their_secrets(store):
    call = ToolCallPart("pay", {"api_key": "sk-live-1234567890abcdef", "password": "hunter2"}, "call-1")
    waiting = DeferredToolRequests(approvals=[call], metadata={"call-1": {"token": "t" * 40}})
    conversation = await saved(store, "a")
    conversation.deferred_tool_requests = waiting
    await store.save(conversation)
    assert (await store.load("c1")).deferred_tool_requests == waiting


async def test_entries_have_ids_and_hang_on_each_other(store):
    stored = await store.save(Conversation(conversation_id="c1", messages=[asked("a"), told("b")]))
    entries = await store.load_entries("c1")
    assert entries == stored
    assert [entry.parent_id for entry in entries] == [None, entries[0].id]
    assert (await store.read_record("c1")).head_id == entries[1].id


async def test_each_entry_can_be_read_by_its_id(store):
    for entry in await store.save(Conversation(conversation_id="c1", messages=[asked("a"), told("b"), asked("c")])):
        assert await store.read_entry(entry.id) == entry


async def test_an_entry_that_is_not_there_is_a_lookup_error(store):
    with pytest.raises(LookupError):
        await store.read_entry("nowhere")


async def test_a_change_of_what_was_given_changes_nothing(store):
    conversation = await saved(store, "a")
    conversation.messages[0].parts[0].content = "other"
    loaded = await store.load("c1")
    loaded.messages[0].parts[0].content = "other"
    assert texts((await store.load("c1")).messages) == ["a"]


# ── the newest of them ────────────────────────────────────────────────────────────────────────────


async def test_the_last_messages_alone(store):
    await saved(store, *"abcde")
    assert texts((await store.load("c1", limit=2)).messages) == ["d", "e"]
    assert texts((await store.load("c1", limit=9)).messages) == list("abcde")
    assert (await store.load("c1", limit=0)).messages == []


async def test_a_window_goes_on_with_all_of_it(store):
    await saved(store, *"abcde")
    window = await store.load("c1", limit=2)
    window.messages.append(told("f"))
    await store.save(window)
    assert texts((await store.load("c1")).messages) == list("abcdef")


async def test_the_first_entry_of_a_window_says_what_it_hangs_on(store):
    await saved(store, *"abc")
    whole = await store.load_entries("c1")
    assert await store.load_entries("c1", limit=2) == whole[1:]


async def test_a_negative_limit_is_refused(store):
    await saved(store, "a")
    for call in (store.load("c1", limit=-1), store.list_conversations(limit=-1)):
        with pytest.raises(UserError):
            await call


# ── two writers ───────────────────────────────────────────────────────────────────────────────────


async def test_a_stale_save_conflicts_and_leaves_nothing(store):
    await saved(store, "a")
    one, two = await store.load("c1"), await store.load("c1")
    for conversation, word in ((one, "b"), (two, "c")):
        conversation.messages.append(told(word))
    await store.save(one)
    with pytest.raises(ConversationConflict):
        await store.save(two)
    assert texts((await store.load("c1")).messages) == ["a", "b"]


async def test_two_saves_at_once_are_one_and_a_conflict(store):
    await saved(store, "a")
    both = [await store.load("c1"), await store.load("c1")]
    for conversation, word in zip(both, "bc", strict=True):
        conversation.messages.append(told(word))
    done = await asyncio.gather(*map(store.save, both), return_exceptions=True)
    assert sorted(isinstance(one, ConversationConflict) for one in done) == [False, True]
    assert len((await store.load("c1")).messages) == 2


async def test_a_stale_save_of_usage_alone_conflicts(store):
    await saved(store, "a")
    one, two = await store.load("c1"), await store.load("c1")
    await store.save(one)
    with pytest.raises(ConversationConflict):
        await store.save(two)


async def test_a_conversation_that_is_there_is_not_made_again(store):
    await saved(store, "a")
    with pytest.raises(ConversationConflict):
        await saved(store, "b")
    assert texts((await store.load("c1")).messages) == ["a"]


async def test_a_conversation_that_is_gone_is_not_saved_over(store):
    conversation = await saved(store, "a")
    await store.delete("c1")
    with pytest.raises(ConversationConflict):
        await store.save(conversation)
    await saved(store, "new")
    with pytest.raises(ConversationConflict):
        await store.save(conversation)


async def test_a_record_whose_head_nobody_has_conflicts(store):
    with pytest.raises(ConversationConflict):
        await store.write_record(ConversationRecord(conversation_id="c1", head_id="nowhere"), expected_revision=None)
    assert await store.read_record("c1") is None


async def test_a_record_is_written_with_its_entries_or_not_at_all(store):
    await saved(store, "a")
    record = await store.read_record("c1")
    entry = ConversationEntry(parent_id=record.head_id, message=told("b"))
    changed = replace(record, head_id=entry.id, revision="r2")
    with pytest.raises(ConversationConflict):
        await store.write_record(changed, new_entries=[entry], expected_revision="other")
    with pytest.raises(LookupError):
        await store.read_entry(entry.id)
    await store.write_record(changed, new_entries=[entry], expected_revision=record.revision)
    assert await store.read_record("c1") == changed


# ── branches ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_branch_goes_on_from_an_earlier_message(store):
    conversation = await saved(store, *"abc")
    branched = await store.branch("c1", at=1, expected_revision=conversation.revision)
    assert texts(branched.messages) == ["a"]
    branched.messages.append(told("d"))
    await store.save(branched)
    assert texts((await store.load("c1")).messages) == ["a", "d"]


async def test_a_branch_that_was_left_can_be_gone_back_to(store):
    conversation = await saved(store, *"abc")
    tip = (await store.read_record("c1")).head_id
    branched = await store.branch("c1", at=1, expected_revision=conversation.revision)
    assert (await store.read_record("c1")).branches == [tip]
    back = await store.branch("c1", from_entry=tip, expected_revision=branched.revision)
    assert texts(back.messages) == list("abc")
    assert texts((await store.load("c1")).messages) == list("abc")


async def test_a_branch_from_the_beginning_is_empty(store):
    conversation = await saved(store, *"ab")
    branched = await store.branch("c1", at=0, expected_revision=conversation.revision)
    branched.messages.append(asked("c"))
    await store.save(branched)
    assert texts((await store.load("c1")).messages) == ["c"]


async def test_a_stale_branch_conflicts(store):
    await saved(store, *"ab")
    with pytest.raises(ConversationConflict):
        await store.branch("c1", at=1, expected_revision="other")


async def test_a_branch_out_of_range_is_refused(store):
    conversation = await saved(store, *"ab")
    for where in ({"at": 3}, {"from_entry": "nowhere"}, {}, {"at": 1, "from_entry": "x"}):
        with pytest.raises(UserError):
            await store.branch("c1", expected_revision=conversation.revision, **where)


async def test_a_history_that_was_rewritten_is_a_branch(store):
    conversation = await saved(store, *"abc")
    tip = (await store.read_record("c1")).head_id
    rewritten = Conversation(
        conversation_id="c1", messages=[*conversation.messages[:1], asked("x")], revision=conversation.revision
    )
    await store.save(rewritten)
    assert texts((await store.load("c1")).messages) == ["a", "x"]
    assert (await store.read_record("c1")).branches == [tip]
    assert texts(entry.message for entry in await store.read_history(tip)) == list("abc")


# ── forks ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_fork_has_the_same_history_and_goes_its_own_way(store):
    await saved(store, *"ab")
    fork = await store.fork("c1", new_conversation_id="c2")
    fork.messages.append(told("c"))
    await store.save(fork)
    assert texts((await store.load("c2")).messages) == list("abc")
    assert texts((await store.load("c1")).messages) == list("ab")
    assert (await store.load_entries("c2"))[:2] == await store.load_entries("c1")


async def test_a_fork_says_where_it_is_from(store):
    await saved(store, *"abc", scope="me")
    entries = await store.load_entries("c1")
    await store.fork("c1", at=2, new_conversation_id="c2")
    record = await store.read_record("c2")
    assert (record.forked_from, record.forked_at, record.scope) == ("c1", entries[1].id, "me")
    assert texts((await store.load("c2")).messages) == list("ab")


async def test_a_fork_of_nothing_is_empty(store):
    await saved(store, *"ab")
    fork = await store.fork("c1", at=0, new_conversation_id="c2")
    assert fork.messages == (await store.load("c2")).messages == []


async def test_a_fork_of_a_fork(store):
    await saved(store, *"ab")
    second = await store.fork("c1", new_conversation_id="c2")
    second.messages.append(told("c"))
    await store.save(second)
    await store.fork("c2", at=3, new_conversation_id="c3")
    assert texts((await store.load("c3")).messages) == list("abc")


async def test_no_fork_takes_an_id_that_is_taken(store):
    await saved(store, "a")
    await saved(store, "b", id="c2")
    with pytest.raises(ConversationConflict):
        await store.fork("c1", new_conversation_id="c2")
    assert texts((await store.load("c2")).messages) == ["b"]


async def test_a_fork_outlives_what_it_was_forked_from(store):
    await saved(store, *"ab")
    await store.fork("c1", new_conversation_id="c2")
    await store.delete("c1")
    assert await store.load("c1") is None
    fork = await store.load("c2")
    assert texts(fork.messages) == list("ab")
    fork.messages.append(told("c"))
    await store.save(fork)
    assert texts((await store.load("c2")).messages) == list("abc")


# ── lists, scopes, removal ────────────────────────────────────────────────────────────────────────


async def test_the_one_that_was_saved_last_comes_first(store):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for number, id in enumerate(["c1", "c2", "c3"]):
        record = ConversationRecord(conversation_id=id, head_id=None, updated_at=now + timedelta(hours=number % 2))
        await store.write_record(record, expected_revision=None)
    listed = await store.list_conversations()
    assert listed[0].conversation_id == "c2"
    assert len(await store.list_conversations(limit=2)) == 2


async def test_a_scope_lists_its_own(store):
    await saved(store, "a", scope="me")
    await saved(store, "b", id="c2", scope="you")
    assert [record.conversation_id for record in await store.list_conversations(scope="me")] == ["c1"]
    assert await store.load("c1", scope="you") is None
    loaded = await store.load("c1", scope="me")
    with pytest.raises(ConversationConflict):
        await store.save(loaded, scope="you")


async def test_what_is_deleted_is_gone(store):
    entries = await store.save(Conversation(conversation_id="c1", messages=[asked("a")]))
    await store.delete("c1", scope="you")
    assert await store.load("c1") is not None
    await store.delete("c1")
    await store.delete("c1")
    assert await store.load("c1") is None
    assert await store.list_conversations() == []
    with pytest.raises(LookupError):
        await store.read_entry(entries[0].id)


async def test_a_delete_that_is_stale_conflicts(store):
    await saved(store, "a")
    for id, revision in (("c1", "other"), ("c2", "other")):
        with pytest.raises(ConversationConflict):
            await store.delete_record(id, expected_revision=revision)
    assert await store.load("c1") is not None
