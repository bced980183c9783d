"""What becomes of each thing in a log on its way to each provider, and what the report says of it."""

import json

import pytest

from tests.wire import official, rules
from tests.wire.scene import KINDS, PDF, PNG, TOOLS, WEB_CALL, WEB_RESULT, answer, ask, call, said, session
from turnlog import Context, File, Image, Invalid, Message, Text, Thinking, ToolCall, ToolResult, Unsupported
from turnlog.wire import Deviation, anthropic, dialect, gemini, openai

OURS = {
    "anthropic": Thinking(text="hm", provider="anthropic", data={"signature": "SIGN"}),
    "responses": Thinking(provider="openai", data={"item": {"id": "rs_1", "summary": [], "encrypted_content": "SIGN"}}),
    "gemini": Thinking(text="hm", provider="gemini", data={"signature": "SIGN"}),
}


def asked(kind, *messages, **options):
    """The request for these messages after a user's, checked, as text as well."""
    start = Message(role="user", blocks=[Text(text="start")])
    request = ask(kind, Context([start, *messages]), **options)
    rules.follow(kind, request)
    official.check(kind, request)
    return request, json.dumps(request)


def left_out(request):
    return [(one.what, one.why) for one in request.report if one.change == "left out"]


# ── reasoning ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", OURS)
def test_reasoning_goes_back_to_whom_it_belongs_and_to_nobody_else(kind):
    for other in KINDS:
        request, text = asked(other, said(OURS[kind], "so"))
        if other == kind:
            assert "SIGN" in text and left_out(request) == []
        else:
            assert "SIGN" not in text
            assert [what for what, _ in left_out(request)] == ["thinking"]


@pytest.mark.parametrize("kind", OURS)
def test_reasoning_of_another_account_is_left_out(kind):
    data = {**OURS[kind].data, "account": "acme"}
    thought = Thinking(text="hm", provider=OURS[kind].provider, data=data)
    assert "SIGN" in asked(kind, said(thought, "so"), account="acme")[1]
    assert "SIGN" in asked(kind, said(thought, "so"))[1]
    request, text = asked(kind, said(thought, "so"), account="rival")
    assert "SIGN" not in text
    assert left_out(request) == [("thinking", "it belongs to another account")]


@pytest.mark.parametrize("kind", ["anthropic", "gemini", "responses"])
def test_an_account_given_to_draft_is_remembered(kind):
    from tests.wire.recorded import RECORDED

    message = answer(kind, RECORDED[kind][1], account="acme")
    s = session()
    s.user("go")
    s.append(message)
    for waiting in s.pending():
        s.tool_result(waiting, "done")
    mine = ask(kind, s.context(), account="acme")
    theirs = ask(kind, s.context(), account="rival")
    assert {one.why for one in theirs.report} > {one.why for one in mine.report}
    for request in (mine, theirs):
        rules.follow(kind, request)
        assert "acme" not in json.dumps(request)


def test_reasoning_whose_past_was_compacted_or_edited_is_not_sent_back_to_anthropic():
    s = session()
    first = s.user("first")
    s.append(said(OURS["anthropic"], "one"))
    s.user("second")
    assert "SIGN" in json.dumps(ask("anthropic", s.context()))
    s.edit(first, "edited")
    request = ask("anthropic", s.context())
    assert "SIGN" not in json.dumps(request)
    assert left_out(request) == [("thinking", "what came before it has been compacted or edited since")]
    s.append(said(OURS["anthropic"], "said to the edited past"))
    s.user("third")
    assert json.dumps(ask("anthropic", s.context())).count("SIGN") == 1
    s.compact("all of that", keep=2)
    assert "SIGN" not in json.dumps(ask("anthropic", s.context()))


def test_an_edit_of_something_later_leaves_reasoning_alone():
    s = session()
    s.user("first")
    s.append(said(OURS["anthropic"], "one"))
    later = s.user("second")
    s.edit(later, "edited")
    assert "SIGN" in json.dumps(ask("anthropic", s.context()))


def test_reasoning_without_proof_or_without_a_word_after_it_is_left_out():
    assert left_out(asked("anthropic", said(Thinking(text="hm", provider="anthropic"), "so"))[0]) == [
        ("thinking", "it has no signature")
    ]
    assert left_out(asked("anthropic", said(OURS["anthropic"]))[0])[0] == ("thinking", "nothing was said after it")
    unencrypted = Thinking(provider="openai", data={"item": {"id": "rs_1", "summary": []}})
    assert left_out(asked("responses", said(unencrypted, "so"))[0]) == [("thinking", "it has no encrypted content")]
    assert left_out(asked("responses", said("so", OURS["responses"]))[0]) == [("thinking", "nothing was said after it")]


def test_what_openai_ran_goes_with_the_reasoning_that_led_to_it():
    ran = ToolCall(id="ws_1", name="web_search", by="provider", meta={"openai": {"item": WEB_CALL}})
    assert "web_search_call" in asked("responses", said(OURS["responses"], ran, "found"))[1]
    request, text = asked("responses", said(OURS["anthropic"], ran, "found"))
    assert "web_search_call" not in text
    assert ("tool call", "the reasoning that led to it is left out") in left_out(request)


def test_a_reasoning_id_that_openai_itself_made_too_long_is_shortened():
    item = {"id": "rs_" + "9" * 413, "summary": [], "encrypted_content": "e"}
    request, _ = asked("responses", said(Thinking(provider="openai", data={"item": item}), "so"))
    assert len(request["input"][1]["id"]) == 64


def test_a_call_that_gemini_did_not_make_is_signed_as_such_for_gemini_3():
    foreign, own = call("1"), call("2", meta={"gemini": {"signature": "SIGN"}})
    done = [Message(role="tool", blocks=[ToolResult(call=id, content="ok")]) for id in "12"]
    request, _ = asked("gemini", said(foreign, own), *done, model="gemini-3-pro")
    assert [part.get("thought_signature") for part in request["contents"][1]["parts"]] == [
        gemini.ask.SKIP_SIGNATURE_CHECK,
        "SIGN",
    ]
    assert gemini.ask.SKIP_SIGNATURE_CHECK not in asked("gemini", said(own, foreign), *done, model="gemini-3-pro")[1]
    assert gemini.ask.SKIP_SIGNATURE_CHECK not in asked("gemini", said(foreign, own), *done, model="gemini-2.5-pro")[1]


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_names_that_a_provider_refuses_are_mapped_and_mapped_back(kind):
    odd = call("functions.bash:0|fc_1", "mcp.files/list")
    result = Message(role="tool", blocks=[ToolResult(call=odd.id, content="ok")])
    request, text = asked(kind, said(odd), result)
    assert odd.id not in text and "mcp.files/list" not in text
    assert {one.change for one in request.report if "is sent as" in one.why} == {"changed"}


@pytest.mark.parametrize(
    "tools",
    [
        [{"type": "function", "function": {"name": "n" * 99, "parameters": {"type": "object"}}}],
        [{"function_declarations": [{"name": "n" * 99, "parameters": {"type": "object"}}]}],
        [{"type": "function", "name": "n" * 99, "parameters": {"type": "object"}}],
    ],
)
def test_a_name_that_is_too_long_comes_back_whichever_way_the_tool_is_written_down(tools):
    context = Context([Message(role="user", blocks=[Text(text="go")])], tools=tools)
    name = ask("chat", context)["tools"][0]["function"]["name"]
    reply = {"choices": [{"message": {"tool_calls": [{"id": "1", "function": {"name": name, "arguments": "{}"}}]}}]}
    assert openai.draft(reply, context=context).blocks[0].name == "n" * 99
    gemini_name = ask("gemini", context)["config"]["tools"][0]["function_declarations"][0]["name"]
    parts = [{"functionCall": {"name": gemini_name, "args": {}}}]
    assert gemini.draft({"candidates": [{"content": {"parts": parts}}]}, context=context).blocks[0].name == "n" * 99


def test_a_tool_the_model_calls_by_its_mapped_name_is_the_tool_of_the_log():
    context = Context(
        [Message(role="user", blocks=[Text(text="go")])], tools=[{"name": "mcp.files/list"}, {"name": "n" * 99}]
    )
    for kind in KINDS:
        request = ask(kind, context)
        sent = json.dumps(request)
        assert "x-mcp-2e-files-2f-list" in sent
    answered = anthropic.draft(
        {"content": [{"type": "tool_use", "id": "1", "name": "x-mcp-2e-files-2f-list", "input": {}}]}
    )
    assert answered.blocks[0].name == "mcp.files/list"
    name = ask("chat", context)["tools"][1]["function"]["name"]
    reply = {"choices": [{"message": {"tool_calls": [{"id": "1", "function": {"name": name, "arguments": "{}"}}]}}]}
    assert openai.draft(reply, context=context).blocks[0].name == "n" * 99
    assert openai.draft(reply).blocks[0].name == name


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_results_in_any_order_and_failures_are_paired(kind):
    messages = [
        said(call("a"), call("b", "read"), call("c")),
        Message(role="tool", blocks=[ToolResult(call="c", content="three")]),
        Message(role="tool", blocks=[ToolResult(call="a", content="one", is_error=True)]),
        Message(role="tool", blocks=[ToolResult(call="b", content="")]),
    ]
    request, text = asked(kind, *messages)
    assert left_out(request) == []
    if kind == "gemini":
        parts = [part["function_response"] for part in request["contents"][2]["parts"]]
        assert [part["response"] for part in parts] == [{"error": "one"}, {"output": ""}, {"output": "three"}]
        assert [part["name"] for part in parts] == ["bash", "read", "bash"]
    elif kind == "anthropic":
        assert [block.get("is_error", False) for block in request["messages"][2]["content"]] == [False, True, False]
    else:
        assert "[error]\\none" in text


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_in_results_arrive(kind):
    messages = [
        said(call("a"), call("b")),
        Message(role="tool", blocks=[ToolResult(call="a", content=[Text(text="see"), Image(data=PNG)])]),
        Message(role="tool", blocks=[ToolResult(call="b", content=[Image(data=PNG)], is_error=True)]),
    ]
    for model in ("gemini-2.5-pro", "gemini-3-pro") if kind == "gemini" else ("any",):
        request, text = asked(kind, *messages, model=model)
        assert text.count("iVBORw0KGgo") == 2
        assert left_out(request) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_nobody_answered_and_a_result_nobody_asked_for_do_no_harm(kind):
    s = session()
    s.tool_result("nobody", "asked")
    s.append(said(call("1"), call("2")))
    s.user("stop")
    s.tool_result("2", "late")
    s.append(said(call("1")))
    request = ask(kind, s.context())
    rules.follow(kind, request)
    official.check(kind, request)
    assert json.dumps(request).count("interrupted") == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_of_one_provider_is_left_out_for_the_others(kind):
    native = {
        "anthropic": {"type": "web_search_20250305", "name": "web_search"},
        "openai": {"type": "web_search"},
        "gemini": {"google_search": {}},
    }
    context = Context([Message(role="user", blocks=[Text(text="go")])], tools=[*TOOLS, *native.values()])
    request = ask(kind, context)
    official.check(kind, request)
    provider = {"responses": "openai", "chat": None}.get(kind, kind)
    text = json.dumps(request)
    for owner, tool in native.items():
        assert (json.dumps(tool)[1:-1] in text) == (owner == provider)
    assert len([what for what, _ in left_out(request) if what == "tool"]) == (3 if kind == "chat" else 2)
    said_so = {"provider": "gemini", "tool": {"code_execution": {}}}
    assert "code_execution" in json.dumps(ask("gemini", Context(context.messages, tools=[said_so])))


def test_calls_that_share_an_id_are_told_apart_and_answered_in_order():
    s = session()
    s.append(said(call("1"), call("1")))
    s.tool_result("1", "a")
    s.tool_result("1", "b")
    order = [message.blocks[0].content for message in s.context() if message.role == "tool"]
    request = ask("anthropic", s.context())
    called = [block["id"] for block in request["messages"][1]["content"]]
    answered = request["messages"][2]["content"]
    assert called == [block["tool_use_id"] for block in answered] == ["1", "x2-1"]
    assert [block["content"][0]["text"] for block in answered] == order == ["a", "b"]


def test_a_choice_of_tools_has_to_be_one():
    context = Context([Message(role="user", blocks=[Text(text="go")])], tools=TOOLS)
    for kind in KINDS:
        with pytest.raises(Invalid, match="no tool 'rm' to choose"):
            ask(kind, context, tool_choice="rm")
    request = ask("chat", Context(context.messages), tool_choice="required")
    assert "tool_choice" not in request
    assert request.report == [Deviation("left out", "tool choice", "there are no tools")]


def test_two_tools_of_one_name_are_sent_once():
    context = Context([Message(role="user", blocks=[Text(text="go")])], tools=[{"name": "a"}, {"name": "a"}])
    assert len(ask("anthropic", context)["tools"]) == 1


def test_anthropic_is_told_of_tools_that_are_no_longer_there():
    result = Message(role="tool", blocks=[ToolResult(call="1", content="ok")])
    request, _ = asked("anthropic", said(call("1")), result)
    assert request["tools"] == [{"name": "bash", "input_schema": {"type": "object"}}]
    assert request["tool_choice"] == {"type": "none"}


def test_a_tool_that_takes_text_stays_one_with_openai():
    custom = call("1", "apply_patch", "*** Begin", meta={"openai": {"type": "custom"}})
    result = Message(role="tool", blocks=[ToolResult(call="1", content="ok")])
    assert [item["type"] for item in asked("responses", said(custom), result)[0]["input"][1:]] == [
        "custom_tool_call",
        "custom_tool_call_output",
    ]
    [called] = asked("chat", said(custom), result)[0]["messages"][1]["tool_calls"]
    assert called["custom"] == {"name": "apply_patch", "input": "*** Begin"}
    assert openai.draft({"choices": [{"message": {"tool_calls": [called]}}]}).blocks == [custom]


# ── what providers run themselves ─────────────────────────────────────────────────────────────────


def server_run():
    return [
        ToolCall(id="srvtoolu_1", name="web_search", input={"query": "x"}, by="provider",
                 meta={"anthropic": {"type": "server_tool_use"}}),
        ToolResult(call="srvtoolu_1", content="found", meta={"anthropic": {"block": WEB_RESULT}}),
    ]  # fmt: skip


def test_what_anthropic_ran_goes_back_to_it_as_it_came():
    request, _ = asked("anthropic", said(*server_run(), "so"))
    assert request["messages"][1]["content"][:2] == [
        {"type": "server_tool_use", "name": "web_search", "id": "srvtoolu_1", "input": {"query": "x"}},
        WEB_RESULT,
    ]


def test_half_of_what_a_provider_ran_is_not_sent():
    ran, found = server_run()
    assert left_out(asked("anthropic", said(ran, "so"))[0]) == [("tool call", "the provider has not answered it")]
    assert left_out(asked("anthropic", said(found, "so"))[0]) == [("tool result", "its call is not there")]


def test_a_paused_turn_is_sent_back_as_it_is_so_that_it_goes_on():
    paused = anthropic.draft(
        {
            "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}],
            "stop_reason": "pause_turn",
        }
    )
    assert paused.stop == "tool_use"
    request = ask("anthropic", Context([Message(role="user", blocks=[Text(text="go")]), paused]))
    assert [message["role"] for message in request["messages"]] == ["user", "assistant"]
    assert request["messages"][1]["content"][0]["type"] == "server_tool_use"
    official.check("anthropic", request)


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────


def test_two_users_in_a_row_are_one_where_turns_alternate():
    again = Message(role="user", blocks=[Text(text="again")])
    assert len(asked("anthropic", again)[0]["messages"]) == len(asked("gemini", again)[0]["contents"]) == 1
    assert len(asked("responses", again)[0]["input"]) == len(asked("chat", again)[0]["messages"]) == 2


@pytest.mark.parametrize("kind", ["anthropic", "gemini"])
def test_the_user_speaks_first_and_last(kind):
    request = ask(kind, Context([said("hello?")]))
    rules.follow(kind, request)
    assert [one.change for one in request.report] == ["added", "added"]


def test_the_assistant_may_speak_last_where_the_caller_wants_it_to_go_on():
    context = Context([Message(role="user", blocks=[Text(text="sun?")]), said("It is (  ")])
    request = ask("anthropic", context, prefill=True)
    assert request["messages"][-1] == {"role": "assistant", "content": [{"type": "text", "text": "It is ("}]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_system_message_in_between_is_heard(kind):
    request, text = asked(kind, Message(role="system", blocks=[Text(text="be brief")]), said("ok"))
    assert "be brief" in text
    assert any(one.change == "changed" for one in request.report) == (kind in ("anthropic", "gemini"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_send_is_refused(kind):
    with pytest.raises(Invalid, match="without messages"):
        ask(kind, Context([], system="hello"))


@pytest.mark.parametrize("kind", KINDS)
def test_options_go_along_as_they_are(kind):
    request, _ = asked(kind, temperature=0.5, max_tokens=99) if kind == "gemini" else asked(kind, max_tokens=99)
    assert "99" in json.dumps(request)
    if kind == "gemini":
        assert request["config"] == {"max_output_tokens": 99, "temperature": 0.5}
    if kind == "chat":
        context = Context([Message(role="user", blocks=[Text(text="go")])])
        assert ask("chat", context, stream=True)["stream_options"] == {"include_usage": True}


# ── pictures and files ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_and_files_come_from_the_store(kind):
    s = session()
    s.user([Image(data=PNG), File(data=PDF, name="plan.pdf"), File(data=b"plain text", media_type="text/plain")])
    assert all(block.blob for block in s.messages()[0].blocks)
    request = ask(kind, s.context())
    official.check(kind, request)
    text = json.dumps(request)
    assert "iVBORw0KGgo" in text and "JVBERi0xLjc" in text
    assert "plain text" in text or "cGxhaW4gdGV4dA" in text
    assert request.report == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("block", "why"),
    [
        (Image(blob="sha256:" + "0" * 64), "its blob is not at hand"),
        (Image(data=b"BM", media_type="image/bmp"), "image/bmp is not accepted"),
        (Image(data=b"BM"), "its kind is not accepted"),
        (Image(url="file:///etc/passwd"), "its URL is not one that a provider can follow"),
        (File(file="f", provider="elsewhere"), "it is a file at elsewhere"),
        (File(data=b"PK", media_type="application/zip"), "application/zip is not accepted"),
        (File(), "it holds nothing"),
    ],
)
def test_what_cannot_be_sent_is_named_in_its_place_and_reported(kind, block, why):
    request, text = asked(kind, Message(role="user", blocks=[block]))
    assert f"left out: {why}]" in text
    assert why in [one.why for one in request.report]


def test_a_missing_blob_says_so():
    from turnlog import NotFound

    def get_blob(digest):
        raise NotFound(f"no blob {digest}")

    context = Context([Message(role="user", blocks=[Image(blob="sha256:12")])], get_blob=get_blob)
    assert "cannot be read: no blob sha256:12" in json.dumps(ask("chat", context))


@pytest.mark.parametrize(
    ("kind", "provider"), [("anthropic", "anthropic"), ("responses", "openai"), ("gemini", "gemini")]
)
def test_a_provider_gets_its_own_file_id(kind, provider):
    block = File(file="file-123", provider=provider, media_type="application/pdf")
    request, text = asked(kind, Message(role="user", blocks=[block]))
    assert "file-123" in text and request.report == []


# ── the room ──────────────────────────────────────────────────────────────────────────────────────


def test_every_dialect_is_found_by_its_name_and_keeps_the_contract():
    from pathlib import Path

    import turnlog.wire

    here = Path(turnlog.wire.__file__).parent
    names = {path.stem for path in here.iterdir() if not path.name.startswith("_")}
    assert names == {"anthropic", "gemini", "openai"}
    for name in names:
        module = dialect(name)
        assert name == module.PROVIDER
        assert callable(module.request) and callable(module.draft) and hasattr(module.Stream(), "feed")
    with pytest.raises(Unsupported):
        dialect("llama")


def test_no_sdk_is_needed():
    import subprocess
    import sys

    program = (
        "import sys; from turnlog.wire import anthropic, gemini, openai; "
        "print([name for name in sys.modules if name.split('.')[0] in ('anthropic', 'openai', 'google', 'pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_rest_body_of_gemini_is_what_its_sdk_would_send():
    from google import genai
    from google.genai import models, types

    s = session()
    s.set("system", "be kind")
    s.set("tools", TOOLS[:1])
    s.user([Text(text="go"), Image(data=PNG)])
    request = gemini.request(s.context(), model="gemini-2.5-pro", max_tokens=9, tool_choice="bash", temperature=1.0)
    parameters = types._GenerateContentParameters.model_validate(dict(request))
    client = genai.Client(api_key="none")
    sent = models._GenerateContentParameters_to_mldev(client._api_client, parameters)
    ours = gemini.body(request)
    assert set(ours) == set(sent) - {"_url"}
    assert ours["generationConfig"] == sent["generationConfig"]
    assert ours["systemInstruction"]["parts"] == [{"text": "be kind"}]
    assert json.loads(json.dumps(ours)) == ours
    for_the_sdk = {"http_options": {"timeout": 5}, "automatic_function_calling": {"disable": True}}
    assert (
        gemini.body(gemini.request(s.context(), model="gemini-2.5-pro", **for_the_sdk)).get("generationConfig") is None
    )


def test_the_guide_shows_python_that_is_python():
    import re
    from pathlib import Path

    guide = Path(__file__).resolve().parents[2] / "docs" / "guide" / "providers.md"
    shown = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    assert len(shown) == 4
    for code in shown:
        compile(code, "providers.md", "exec")


def test_a_choice_among_tools_that_chat_completions_does_not_take_is_reported():
    s = session()
    s.user("hi")
    s.set("tools", [{"type": "web_search"}])
    request = openai.request(s.context(), model="gpt-5", api="chat", tool_choice="required")
    assert "tool_choice" not in request
    assert ("left out", "tool choice") in [(one.change, one.what) for one in request.report]
