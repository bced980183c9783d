"""What a provider compacted goes back to it, to the byte, in place of what it stands for; others get what was said."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from tests.wire import official, rules
from tests.wire.scene import KINDS, answer, ask, call, said, session, stream
from turnlog import Usage
from turnlog.cli.draw.entryline import in_one_line
from turnlog.compaction import CLEARED, CompactionPolicy
from turnlog.log.context.nativecompaction import compacted
from turnlog.view.rowmaker import Rows
from turnlog.wire import anthropic, openai

WHERE = {"anthropic": "messages", "responses": "input", "chat": "messages", "gemini": "contents"}
BLOCK = {
    "content": "They want the bicycle blue.", "encrypted_content": "RW5j", "type": "compaction", "signature": "c2ln",
    "tool_changes": [],
}  # fmt: skip
ITEM = {"id": "cmp_1", "encrypted_content": "gAAAAA==", "type": "compaction"}
SENT = {"anthropic": BLOCK, "responses": ITEM}
NATIVE = tuple(SENT)


def response(kind, *, text="Blue it is.", native=None):
    """An answer in which the provider compacted what came before."""
    native = SENT[kind] if native is None else native
    if kind == "anthropic":
        content = [native] + ([{"type": "text", "text": text}] if text else [])
        usage = {
            "input_tokens": 40, "output_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "iterations": [
                {"type": "compaction", "input_tokens": 9_000, "output_tokens": 70,
                 "cache_creation_input_tokens": 0, "cache_read_input_tokens": 500},
                {"type": "message", "input_tokens": 40, "output_tokens": 9, "model": "claude-sonnet-5-5",
                 "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
            ],
        }  # fmt: skip
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": content,
            "stop_reason": "end_turn" if text else "compaction", "stop_sequence": None, "usage": usage,
        }  # fmt: skip
    spoken = {
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": "completed",
        "output": [native, spoken] if text else [native], "parallel_tool_calls": True, "tool_choice": "auto",
        "tools": [], "usage": {
            "input_tokens": 9_000, "output_tokens": 30, "total_tokens": 9_030,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip


def events(kind, *, upto=None):
    """The same in pieces."""
    whole = response(kind)
    if kind == "responses":
        made = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
        made.append(
            {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "encrypted_content": ""}}
        )
        made.append({"type": "response.compaction.compacting", "output_index": 0, "item_id": "cmp_1"})
        made.append({"type": "response.output_item.done", "output_index": 0, "item": ITEM})
        made.append({"type": "response.completed", "response": whole})
    else:
        start = {**BLOCK, "content": None, "encrypted_content": None, "signature": None}
        grown = {"type": "compaction_delta", "content": BLOCK["content"], "encrypted_content": "RW5j"}
        made = [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": grown},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Blue it is."}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": whole["usage"]},
            {"type": "message_stop"},
        ]
    return [official.event(kind, {**event, "sequence_number": 1}) for event in made[:upto]]


def asked(s):
    """A conversation that is long enough."""
    s.user("which colour was it?")
    s.append(said("let me see", call("c1")))
    s.tool_result("c1", "red, so far")
    s.assistant("red")
    s.user("make it blue")
    return s


def compacts(kind, s, **options):
    """The provider compacts while it answers."""
    return s.append(answer(kind, official.response(kind, response(kind)), context=s.context(), **options))


def words(request):
    return json.dumps({key: request[key] for key in ("messages", "input", "contents") if key in request})


def is_native(kind, request):
    """Whether the request has the compaction, to the byte, and nothing that it stands for."""
    first = request[WHERE[kind]][0]
    first = first["content"][0] if kind == "anthropic" else first
    has = json.dumps(first) == json.dumps(SENT[kind])
    assert has is ("which colour" not in words(request)) is ("red, so far" not in words(request))
    assert ("compaction" in words(request)) is has
    rules.follow(kind, request)
    return has


@pytest.mark.parametrize("kind", NATIVE)
def test_it_goes_back_in_place_of_what_it_stands_for_and_others_get_what_was_said(kind, tmp_path):
    with turnlog.open(tmp_path) as home:
        s = asked(home.create())
        compacts(kind, s)
        s.user("and now?")
        before = len(s.context())
    with turnlog.open(tmp_path) as home:
        context = home.resume(s.id).context()
        assert len(context) == before == 7
        request = ask(kind, context)
        assert is_native(kind, request) and "Blue it is." in words(request) and "and now?" in words(request)
        assert [deviation.what for deviation in request.report] == ["message"]
        for other in set(KINDS) - {kind}:
            request = ask(other, context)
            rules.follow(other, request)
            assert all(text in words(request) for text in ("which colour", "red, so far", "Blue it is.", "and now?"))
            assert "compaction" not in words(request) and "bicycle" not in words(request)
            assert "compaction" in [deviation.what for deviation in request.report]
        assert is_native(kind, ask(kind, context, account=None))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


@given(
    content=TEXT,
    rest=st.dictionaries(TEXT.filter(lambda name: name not in ("type", "content")), ANY, max_size=3),
    first=st.booleans(),
)
@settings(max_examples=25)
def test_whatever_anthropic_put_into_it_comes_back_to_the_byte(content, rest, first):
    block = {"type": "compaction", **({"content": content, **rest} if first else {**rest, "content": content})}
    with turnlog.open("memory:") as home:
        s = asked(home.create())
        s.append(anthropic.draft(response("anthropic", native=block)))
        s.user("and now?")
        request = anthropic.request(home.read(s.id).context(), model="m", max_tokens=9)
    assert json.dumps(request["messages"][0]["content"][0]) == json.dumps(block)


@given(
    sealed=TEXT, id=TEXT, by=st.booleans(), said_too=st.lists(ANY.map(lambda value: {"type": "message", "x": value}))
)
@settings(max_examples=25)
def test_whatever_openai_sealed_comes_back_to_the_byte(sealed, id, by, said_too):
    item = {"id": id, "type": "compaction", "encrypted_content": sealed}
    whole = {**response("responses"), "object": "response.compaction", "output": [*said_too, item]}
    for made, sent in ((whole, [*said_too, item]), (response("responses", native=item, text=""), [item])):
        if by:
            made = {**made, "output": [*made["output"][:-1], {**item, "created_by": "user_1"}]}
        with turnlog.open("memory:") as home:
            s = asked(home.create())
            s.append(openai.draft(made))
            s.user("and now?")
            request = openai.request(home.read(s.id).context(), model="m")
        assert json.dumps(request["input"][:-1]) == json.dumps(sent)


def test_a_window_that_openai_was_asked_to_compact_is_sent_as_it_is():
    s = asked(session())
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "which colour was it?"}]}
    window = {
        "id": "resp_2", "object": "response.compaction", "created_at": 1, "output": [kept, ITEM],
        "usage": response("responses")["usage"],
    }  # fmt: skip
    message = s.append(openai.draft(window, context=s.context()))
    assert (message.stop, message.usage) == ("end", Usage(input_tokens=9_000, output_tokens=30))
    s.user("and now?")
    assert ask("responses", s.context())["input"][:2] == [kept, ITEM]
    assert ask("responses", s.context())["input"][2]["content"][0]["text"] == "and now?"


def test_what_was_thought_and_run_inside_a_window_is_sent_as_it_is():
    s = asked(session())
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
    ran = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
    for output in ([thought, ran, ITEM], [ITEM, thought]):
        window = {
            "id": "resp_2", "object": "response.compaction", "created_at": 1, "output": output,
            "usage": response("responses")["usage"],
        }  # fmt: skip
        s.append(openai.draft(window, context=s.context()))
        s.user("and now?")
        request = ask("responses", s.context())
        assert request["input"][: len(output)] == output
        assert {one.what for one in request.report} == {"message"}


@pytest.mark.parametrize("kind", NATIVE)
def test_a_stream_brings_the_same_and_half_a_compaction_is_none(kind):
    s = asked(session())
    request = ask(kind, s.context())
    feed = stream(kind, request=request)
    for event in events(kind):
        feed.feed(event)
    streamed, whole = feed.finish(), answer(kind, official.response(kind, response(kind)), context=s.context())
    assert (streamed.blocks, streamed.usage, streamed.stop) == (whole.blocks, whole.usage, whole.stop)
    assert compacted(streamed.blocks[0]) and streamed.blocks[0].data["seen"] == s.context().head_id
    feed = stream(kind, request=request)
    for event in events(kind, upto=3):
        feed.feed(event)
    message = feed.finish()
    assert (message.stop, [block for block in message.blocks if compacted(block)]) == ("aborted", [])


@pytest.mark.parametrize("kind", NATIVE)
def test_edits_rewinds_and_summaries_of_what_it_stands_for_bring_that_back(kind):
    s = asked(session())
    compacts(kind, s)
    s.user("and now?")
    later = s.assistant("done")
    s.user("thanks")
    fork = s.fork()
    s.edit(later, "all done")
    assert is_native(kind, ask(kind, s.context())) and is_native(kind, ask(kind, fork.context()))
    edit = s.edit(s.messages()[2], "red, and a secret")
    assert "and a secret" in words(ask(kind, s.context())) and '"compaction"' not in words(ask(kind, s.context()))
    s.rewind(to=edit.parent, files=False)
    assert is_native(kind, ask(kind, s.context()))
    done = s.compact("all of it", keep=4)
    assert "all of it" in words(ask(kind, s.context())) and '"compaction"' not in words(ask(kind, s.context()))
    s.uncompact(done)
    assert is_native(kind, ask(kind, s.context()))
    done = s.compact("all of it", keep=4)
    s.assistant("under a summary")
    s.uncompact(done)
    assert is_native(kind, ask(kind, s.context()))
    s.rewind(to=s.messages()[4], files=False)
    assert not is_native(kind, ask(kind, s.context()))
    assert is_native(kind, ask(kind, fork.context()))


@pytest.mark.parametrize("kind", NATIVE)
def test_it_is_for_the_account_that_made_it(kind):
    s = asked(session())
    compacts(kind, s, account="ours")
    s.user("and now?")
    assert is_native(kind, ask(kind, s.context())) and is_native(kind, ask(kind, s.context(), account="ours"))
    assert not is_native(kind, ask(kind, s.context(), account="theirs"))


@pytest.mark.parametrize("kind", NATIVE)
def test_what_was_said_while_it_was_made_is_sent_with_it(kind):
    s = asked(session())
    s.append(said(call("c2"), call("c3")))
    s.tool_result("c3", "painted")
    made = answer(kind, response(kind), context=s.context())
    s.user("no, green!")
    s.append(said(call("c4")))
    s.append(made)
    s.tool_result("c2", "came late")
    request = ask(kind, s.context())
    assert is_native(kind, request)
    assert all(text in words(request) for text in ("no, green!", "came late", "c2", "c4", "Blue it is."))
    assert "painted" not in words(request) and "c3" not in words(request)
    assert s.context().tokens < 400


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("meanwhile", ["edit", "edit the last", "compact", "nothing"])
def test_what_was_edited_or_summed_up_while_it_was_made_is_not_in_it(kind, meanwhile):
    s = asked(session())
    s.edit(s.messages()[3], "reddish")
    made = answer(kind, response(kind), context=s.context())
    if meanwhile == "compact":
        s.user("no, green!")
        s.compact("they speak of green")
    elif meanwhile != "nothing":
        s.edit(s.messages()[-1 if "last" in meanwhile else 0], "which [redacted]")
    s.append(made)
    s.user("and now?")
    request = ask(kind, s.context())
    assert (json.dumps(SENT[kind]) in words(request)) is (meanwhile == "nothing")
    assert {"compact": "they speak of green", "nothing": "and now?"}.get(meanwhile, "[redacted]") in words(request)


@pytest.mark.parametrize("kind", NATIVE)
def test_it_is_not_sent_on_a_branch_that_it_never_saw(kind):
    s = asked(session())
    first = s.messages()[0]
    made = answer(kind, response(kind), context=s.context())
    s.rewind(to=first, files=False)
    s.append(made)
    s.user("and now?")
    assert "which colour" in words(ask(kind, s.context())) and "cmp" not in words(ask(kind, s.context()))


@pytest.mark.parametrize("kind", NATIVE)
def test_the_newest_one_counts(kind):
    s = asked(session())
    compacts(kind, s)
    s.user("and now?")
    context = s.context()
    s.append(answer(kind, response(kind, text="An older one."), context=context))
    s.append(answer(kind, response(kind, text="A newer one."), context=context))
    s.user("well?")
    request = ask(kind, s.context())
    assert is_native(kind, request) and words(request).count('"compaction"') == 1
    assert "An older one." in words(request) and "and now?" not in words(request)


def test_anthropic_may_pause_after_it_or_be_asked_for_nothing_else():
    s = asked(session())
    paused = s.append(anthropic.draft(response("anthropic", text=""), context=s.context()))
    assert paused.stop == "tool_use"
    assert ask("anthropic", s.context())["messages"] == [{"role": "assistant", "content": [BLOCK]}]
    s = asked(session())
    s.assistant("blue")
    assert ask("anthropic", s.context())["messages"][-1]["role"] == "user"
    request = anthropic.request(s.context(), model="m", max_tokens=9, compaction={"type": "summarize"})
    assert request["messages"][-1] == {"role": "assistant", "content": [{"type": "text", "text": "blue"}]}


def test_a_compaction_that_failed_stands_for_nothing():
    s = asked(session())
    s.append(
        anthropic.draft(response("anthropic", native={"type": "compaction", "content": None}), context=s.context())
    )
    s.user("and now?")
    assert not is_native("anthropic", ask("anthropic", s.context()))


@pytest.mark.parametrize("kind", NATIVE)
def test_it_is_paid_for_counted_and_left_alone_by_a_policy(kind):
    s = session()
    s.user("begin")
    s.append(said(call("c1")))
    s.tool_result("c1", "a line\n" * 4_000)
    s.user("go on")
    before = s.context().tokens
    compacts(kind, s)
    paid = s.usage().own
    assert (paid.all_input_tokens, paid.output_tokens) == ((9_540, 79) if kind == "anthropic" else (9_000, 30))
    assert s.context().tokens < 100 < before
    policy = CompactionPolicy(budget=2_000, keep_turns=1)
    assert policy.decide(s.context()).does == "nothing"
    s.append(said(call("c2")))
    s.tool_result("c2", "a line\n" * 2_000)
    s.assistant("read")
    s.user("once more")
    step = policy.decide(s.context())
    assert (step.does, [edit.blocks[0].content for edit in step.edits]) == ("clear", [CLEARED])
    s.append(*step.edits)
    assert "c2" in words(ask(kind, s.context())) and "begin" not in words(ask(kind, s.context()))
    assert s.context().tokens < 2_000


def test_an_erasure_names_it_however_long_it_is_and_may_take_it_along(tmp_path):
    with turnlog.open(tmp_path) as home:
        s = asked(home.create())
        long = {**ITEM, "encrypted_content": "gAAA" * 50_000}
        message = s.append(openai.draft(response("responses", native=long), context=s.context()))
        s.user("and now?")
        assert ask("responses", s.context())["input"][0] == long
        receipt = s.erase(s.messages()[0])
        assert [entry.seq for entry in receipt.summaries] == [message.seq]
        s.erase(message)
        assert "gAAA" not in words(ask("responses", s.context()))
        assert "red, so far" in words(ask("responses", s.context()))


def test_a_reader_sees_who_compacted():
    message = compacts("anthropic", asked(session()))
    shown = str(list(Rows().of(message)))
    assert "by anthropic" in shown and BLOCK["content"] in shown
    assert "(compacted by anthropic)" in in_one_line(message)
