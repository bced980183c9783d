"""`TurnlogSessionStore`: the SDK's contracts and tests, the same lines, a real program, and what a session can do."""

import asyncio
import json
import os
import subprocess
import sys
import uuid

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    list_sessions_from_store,
    project_key_for_directory,
    query,
)
from claude_agent_sdk.testing import run_session_store_conformance

import turnlog
from tests.adapters import theirs
from tests.agents.provider import Provider
from tests.agents.script import say
from turnlog import Invalid, Text, ToolCall, ToolResult, Unavailable
from turnlog.adapters.claude_sdk import TurnlogSessionStore
from turnlog.log.entry import Child
from turnlog.thread.home.creator import Creator

PRIVATE = {
    "test_continue_picks_most_recent",
    "test_continue_skips_sidechain_sessions",
    "test_continue_tie_break_is_deterministic",
}
"""They set the private `_mtimes` of its in-memory store. One that begins to pass has to go."""
COUNTING = [
    "test_load_concurrency_is_bounded",
    "test_gap_fill_bounded_concurrency",
    "test_cancelled_after_mkdtemp_cleans_temp_dir",
    "test_eager_flush_mode_appends_per_frame_before_result",
]
"""They count turns of the loop, in which a thread may or may not be done: they run without threads."""
FILES = [
    *(
        f"tests/test_session_{name}.py"
        for name in ("store_conformance", "helpers_store", "resume", "import", "summary")
    ),
    "tests/test_transcript_mirror.py",
]


def test_the_tests_of_the_sdk(tmp_path):
    found = theirs.run("claude-sdk", tmp_path, FILES, "-k", f"not ({' or '.join(COUNTING)})")
    failed = {name for name, how in found.items() if how != "passed"}
    assert failed == {f"{name}[{loop}]" for name in PRIVATE for loop in ("asyncio", "trio")}
    assert sum("trio" not in name for name in found) == 206 - len(COUNTING)


def test_the_tests_of_the_sdk_that_count_turns_of_the_loop(tmp_path):
    found = theirs.run("claude-sdk", tmp_path, FILES, "-p", "onloop", "-k", " or ".join(COUNTING))
    assert set(found.values()) == {"passed"}
    assert sum("trio" not in name for name in found) == len(COUNTING)


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_all_contracts_of_the_sdk(backend, tmp_path):
    made = []

    def make():
        made.append(TurnlogSessionStore("memory:" if backend == "memory" else tmp_path / str(len(made))))
        return made[-1]

    asyncio.run(run_session_store_conformance(make))
    assert len(made) == 15  # each of the 14 contracts has its own: no method was skipped


KEY = {"project_key": "-home-me", "session_id": "3f0c4bd2-0000-4000-8000-000000000001"}


def line(number: int, parent: int | None, kind: str = "user", **fields):
    """A line as Claude Code writes it; numbers stand for uuids."""
    content = fields.pop("content", f"say {number}")
    return {
        "parentUuid": None if parent is None else str(uuid.UUID(int=parent)),
        "isSidechain": False,
        "cwd": "/home/me",
        "sessionId": KEY["session_id"],
        "type": kind,
        "message": {"role": kind, "content": content, **fields.pop("message", {})},
        "uuid": str(uuid.UUID(int=number)),
        "timestamp": f"2026-11-01T10:00:{number % 60:02d}.000Z",
        **fields,
    }


def answered(number: int, parent: int, *blocks, id: str = "", tokens: int = 2):
    usage = {"input_tokens": 10, "output_tokens": tokens, "service_tier": "standard"}
    about = {"id": id or f"msg_{number}", "model": "claude-sonnet-4-5", "stop_reason": "end_turn", "usage": usage}
    return line(number, parent, "assistant", content=list(blocks), message=about, requestId=f"req_{number}")


def called(number: int, name: str = "Bash"):
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"command": f"ls {number}"}}


def told(number: int, text: str):
    return {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": text}


ODD = [
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"trackedFileBackups": {}}},
    line(1, None),
    answered(
        2, 1, {"type": "thinking", "thinking": "so", "signature": "s" * 300}, {"type": "text", "text": "x\x00ü\u2028"}
    ),
    answered(3, 2, {**called(3), "caller": {"type": "direct"}}),
    line(4, 3, content=[told(3, "a" * 70_000)], toolUseResult={"stdout": "a" * 70_000, "n": [2**70, -0.0]}),
    line(
        5,
        4,
        content=[
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cHBw"}},
            {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
            "no part",
            {"type": "of next year"},
        ],
    ),
    line(6, 5, content=[told(9, "nobody asked"), {"type": "text", "text": "and text"}], isMeta=True),
    {**line(7, 6, content="lone \ud800 surrogate"), "nested": {"api_key": "k", "": {}, "~": {"~~": ["0.text"]}}},
    {"type": "custom-title", "customTitle": "a title", "sessionId": KEY["session_id"]},
    answered(8, 7, {"type": "text", "text": "failed"}) | {"isApiErrorMessage": True, "message": {"content": 3.0}},
    {"n": 1, "uuid": 7, "message": None, "parentUuid": ["?"]},
]


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_every_odd_line_comes_back_exactly_and_is_exported_as_it_was(backend, tmp_path):
    async def work():
        place = turnlog.open("memory:" if backend == "memory" else tmp_path / "home")
        store = TurnlogSessionStore(place)
        for one in ODD:
            await store.append(KEY, [one])
        again = TurnlogSessionStore(place if backend == "memory" else turnlog.open(tmp_path / "home"))
        await again.append(KEY, [one for one in ODD if isinstance(one.get("uuid"), str)])
        return await again.load(KEY), place

    lines, home = asyncio.run(work())
    assert [json.dumps(one) for one in lines] == [json.dumps(one) for one in ODD]
    exported = home.resume("/".join(KEY.values())).export("claude-code", tmp_path / "out.jsonl")
    assert exported.lost == []
    written = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert [json.dumps(json.loads(one)) for one in written] == [json.dumps(one) for one in ODD]


def test_a_line_that_is_none_is_refused_and_leaves_no_session(tmp_path):
    async def work(key, lines):
        await TurnlogSessionStore(tmp_path).append(key, lines)

    bad = ("bad", {"type": "user", "message": {"content": object()}}, {"deep": {1, 2}})
    for lines in (*([line(1, None), one] for one in bad), None, 3, "text", line(1, None)):
        for key in (KEY, {**KEY, "subpath": "subagents/agent-1"}):
            with pytest.raises(Invalid):
                asyncio.run(work(key, lines))
    for key in (
        {**KEY, "session_id": ""},
        {"project_key": "p"},
        {**KEY, "project_key": 3},
        {**KEY, "subpath": 3},
        "key",
    ):
        with pytest.raises(Invalid):
            asyncio.run(work(key, [line(1, None)]))
    with turnlog.open(tmp_path) as home:
        assert home.sessions() == []


def test_a_session_is_shown_counted_and_titled(tmp_path):
    said = {"type": "text", "text": "I look"}
    lines = [
        line(1, None),
        answered(2, 1, said, id="msg_a", tokens=1),
        answered(3, 2, called(3), id="msg_a", tokens=5),
        answered(4, 3, called(4), id="msg_a", tokens=5),
        line(5, 3, content=[told(3, "one")]),
        line(6, 4, content=[told(4, "two")]),
        answered(7, 5, {"type": "text", "text": "done"}, tokens=3),
        {"type": "ai-title", "aiTitle": "looking around", "sessionId": KEY["session_id"]},
        {"type": "tag", "tag": "mine", "sessionId": KEY["session_id"]},
    ]

    async def work(home):
        store = TurnlogSessionStore(home)
        for one in lines:
            await store.append(KEY, [one])
        await store.append({**KEY, "subpath": "subagents/agent-1"}, [{**line(9, None), "isSidechain": True}])
        [info] = await list_sessions_from_store(store, directory="/home/me")
        return info

    with turnlog.open(tmp_path / "home") as home:
        info = asyncio.run(work(home))
        assert (info.summary, info.first_prompt, info.tag) == ("looking around", "say 1", "mine")
        session = home.resume("/".join(KEY.values()))
        roles = [message.role for message in session.messages()]
        assert roles == ["user", "assistant", "assistant", "assistant", "tool", "tool", "assistant"]
        assert (session.usage().own.input_tokens, session.usage().own.output_tokens) == (20, 8)
        assert session.messages()[2].blocks == [ToolCall(id="toolu_3", name="Bash", input={"command": "ls 3"})]
        assert isinstance(session.messages()[4].blocks[0], ToolResult)
        assert (session.title, session.get("tags"), session.workspace) == ("looking around", ["mine"], "/home/me")
        assert len(session.branches()) == 1
        [child] = session.children()
        assert child.parent == session.id


@pytest.mark.parametrize("fails", ["append", "create"])
def test_a_subagent_is_named_by_its_session_whatever_was_interrupted(tmp_path, monkeypatch, fails):
    async def work():
        async with TurnlogSessionStore(tmp_path) as store:
            sub = {**KEY, "subpath": "subagents/agent-1"}
            await store.append(KEY, [line(1, None)])
            kind = turnlog.Session if fails == "append" else Creator
            whole, failures = getattr(kind, fails), [Unavailable("the disk did not answer")]

            def interrupted(self, *args, **options):
                if failures and (fails == "create" or isinstance(args[0], Child)):
                    raise failures.pop()
                return whole(self, *args, **options)

            monkeypatch.setattr(kind, fails, interrupted)
            with pytest.raises(Unavailable):
                await store.append(sub, [{**line(9, None), "isSidechain": True}])
            await store.append(sub, [{**line(9, None), "isSidechain": True}])
            assert len(await store.load(sub)) == 1
        with turnlog.open(tmp_path) as home:
            [child] = home.read("/".join(KEY.values())).children()
            assert len(home.read(child.id).messages()) == 1

    asyncio.run(work())


def test_a_line_that_points_back_is_a_branch_and_a_summary_a_compaction(tmp_path):
    async def work(home):
        store = TurnlogSessionStore(home)
        answers = [{"type": "text", "text": f"answer {number}"} for number in range(9)]
        await store.append(KEY, [line(1, None), answered(2, 1, answers[1]), line(3, 2), answered(4, 3, answers[2])])
        session = home.resume("/".join(KEY.values()))
        again = [line(5, 2), answered(6, 5, answers[3])]
        await store.append(KEY, again)
        await store.append(KEY, again)
        session.refresh()
        assert [turnlog.log.context.text_of(one.blocks) for one in session.messages()] == [
            "say 1", "answer 1", "say 5", "answer 3",
        ]  # fmt: skip
        assert len(session.branches()) == 2
        boundary = {"type": "system", "subtype": "compact_boundary", "uuid": str(uuid.UUID(int=7)), "parentUuid": None}
        await store.append(KEY, [boundary, line(8, 7, isCompactSummary=True, content="so far"), line(9, 8)])
        session.refresh()
        assert [turnlog.log.context.text_of(one.blocks) for one in session.context()] == ["so far", "say 9"]
        assert len(await store.load(KEY)) == 9

    with turnlog.open(tmp_path) as home:
        asyncio.run(work(home))


@pytest.mark.parametrize("at_once", [True, False])
def test_results_that_claude_code_no_longer_sends_are_edited_and_its_lines_stay(at_once, tmp_path):
    lines = [
        line(1, None),
        answered(2, 1, called(2), called(3)),
        line(3, 2, content=[told(2, "a long result")]),
        line(4, 3, content=[told(3, "another")]),
        {
            "type": "system", "subtype": "microcompact_boundary", "uuid": str(uuid.UUID(int=5)),
            "parentUuid": str(uuid.UUID(int=4)), "content": "Context microcompacted",
            "microcompactMetadata": {"trigger": "auto", "compactedToolIds": ["toolu_2", 7]},
        },
        line(6, 5),
    ]  # fmt: skip

    async def work(home):
        store = TurnlogSessionStore(home)
        for some in [lines] if at_once else [[one] for one in lines]:
            await store.append(KEY, some)
        await store.append(KEY, lines)
        assert await store.load(KEY) == lines

    with turnlog.open(tmp_path) as home:
        asyncio.run(work(home))
        session = home.resume("/".join(KEY.values()))
        seen = [block.content for one in session.context() for block in one.blocks if isinstance(block, ToolResult)]
        assert seen == ["[Old tool result content cleared]", "another"]
        assert [one.role for one in session.messages()] == ["user", "assistant", "tool", "tool", "user"]
        assert len(session.branches()) == 1


def texts(lines) -> list[str]:
    found = [one["message"]["content"] for one in lines if one["type"] in ("user", "assistant")]
    return [one if isinstance(one, str) else one[0].get("text") or one[0]["type"] for one in found]


def test_what_turnlog_does_to_the_conversation_the_sdk_sees(tmp_path):
    async def work(home):
        store = TurnlogSessionStore(home)
        for number in (1, 2, 3):
            await store.append(KEY, [line(number, number - 1 or None)])
        ours = home.resume("/".join(KEY.values()))
        ours.assistant([Text("from elsewhere"), ToolCall(id="c", name="Bash", input={"command": "ls"})])
        ours.tool_result("c", "out")
        seen = await store.load(KEY)
        assert texts(seen) == ["say 1", "say 2", "say 3", "from elsewhere", "tool_result"]
        assert [one["parentUuid"] for one in seen[1:]] == [one["uuid"] for one in seen[:-1]]
        assert seen[:3] == [line(number, number - 1 or None) for number in (1, 2, 3)]
        assert {one["sessionId"] for one in seen} == {KEY["session_id"]}
        ours.edit(ours.messages()[0], "[redacted]")
        assert (await store.load(KEY))[0]["message"]["content"] == "[redacted]"
        await store.append(KEY, [line(4, 3)])
        ours.refresh()
        ours.compact("so far", keep=1)
        assert texts(await store.load(KEY))[-2].endswith("so far")
        assert texts(await store.load(KEY))[-1] == "say 4"
        ours.rewind(to=ours.find(str(uuid.UUID(int=2))))
        assert texts(await store.load(KEY)) == ["say 1", "say 2"]
        assert len(ours.fork().messages()) == 2
        await store.delete(KEY)
        assert await store.load(KEY) is None

    with turnlog.open(tmp_path) as home:
        asyncio.run(work(home))


def test_a_session_of_another_agent_can_be_gone_on_with(tmp_path):
    with turnlog.open(tmp_path) as home:
        other = home.create(id="/".join(KEY.values()))
        other.user("hello")
        other.assistant("hi")
        assert texts(asyncio.run(TurnlogSessionStore(home).load(KEY))) == ["hello", "hi"]


WORKER = """
import asyncio, sys, uuid
from turnlog.adapters.claude_sdk import TurnlogSessionStore

async def main():
    store = TurnlogSessionStore(sys.argv[1])
    key = {"project_key": "p", "session_id": "s"}
    for number in range(50):
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{sys.argv[2]}:{number}"))
        line = {"type": "user", "uuid": name, "message": {"content": f"{sys.argv[2]}:{number}"}, "lastPrompt": name}
        for _ in range(2):
            await store.append(key, [line])

asyncio.run(main())
"""


def test_eight_processes_keep_every_line_once(tmp_path):
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(me)], env=os.environ) for me in range(8)
    ]
    assert [worker.wait(timeout=300) for worker in workers] == [0] * 8
    store = TurnlogSessionStore(tmp_path)
    lines = asyncio.run(store.load({"project_key": "p", "session_id": "s"}))
    said = [one["message"]["content"] for one in lines]
    assert len(set(said)) == len(said) == 400
    for me in range(8):
        assert [one for one in said if one.startswith(f"{me}:")] == [f"{me}:{number}" for number in range(50)]
    [summary] = asyncio.run(store.list_session_summaries("p"))
    assert summary["data"]["last_prompt"] == lines[-1]["uuid"]


# ── the real program ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The SDK's own Claude Code, which speaks to a scripted model only."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "turnlog"))
    with Provider() as provider:
        told = {
            "HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude"), "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1", "HTTPS_PROXY": provider.url, "HTTP_PROXY": provider.url, "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        yield provider


def said_to(provider) -> list[str]:
    """What the model was asked last, without what the program says on its own account."""
    blocks = [(role, block) for role, blocks in provider.main[-1].conversation for block in blocks]
    return [block.text for role, block in blocks if role != "system" and not block.text.startswith("<system-reminder>")]


def test_a_program_goes_on_where_it_was(program, tmp_path):
    async def run(prompt, **options):
        store = TurnlogSessionStore()
        told = ClaudeAgentOptions(session_store=store, model="claude-sonnet-4-5", setting_sources=[], **options)
        found = [message async for message in query(prompt=prompt, options=told)]
        store.close()
        return next(message.session_id for message in found if isinstance(message, ResultMessage))

    program.play(say("answer 1", input=10, output=2))
    session_id = asyncio.run(run("question 1"))
    for path in (tmp_path / ".claude/projects").rglob("*.jsonl"):
        path.unlink()  # only the store has it now
    program.play(say("answer 2", input=20, output=3))
    assert asyncio.run(run("question 2", resume=session_id)) == session_id
    assert said_to(program) == ["question 1", "answer 1", "question 2"]
    with turnlog.open(tmp_path / "turnlog") as home:
        session = home.resume(f"{project_key_for_directory(str(tmp_path / 'work'))}/{session_id}")
        assert [one.role for one in session.messages() if one.display is not False] == ["user", "assistant"] * 2
        assert session.usage().own.output_tokens == 5
        assert session.labels["framework"] == "claude-sdk"


def turnlog_says(tmp_path, *words):
    """What a command prints for programs; of the home and of Claude Code's own folder."""
    command = [sys.executable, "-m", "turnlog", *words, "--json"]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, cwd=tmp_path / "work")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_session_counts_once_beside_the_file_that_claude_code_keeps(program, tmp_path):
    async def run(prompt):
        async with TurnlogSessionStore() as store:
            told = ClaudeAgentOptions(session_store=store, model="claude-sonnet-4-5", setting_sources=[])
            return [message async for message in query(prompt=prompt, options=told)]

    program.play(say("an unusual answer", input=10, output=2))
    asyncio.run(run("an unusual question"))
    assert len(list((tmp_path / ".claude/projects").rglob("*.jsonl"))) == 1
    [row] = turnlog_says(tmp_path, "ls", "--all")["sessions"]
    [found] = turnlog_says(tmp_path, "search", "unusual question")["sessions"]
    used = turnlog_says(tmp_path, "usage")
    assert row["id"] == found["id"]
    assert used["total"]["output_tokens"] == 2


def test_the_guide_runs(program, tmp_path):
    program.play(say("hello", input=10, output=2))
    names = {"ClaudeAgentOptions": ClaudeAgentOptions, "query": query}
    code = "async def main():\n" + "".join(f"    {row}\n" for row in theirs.snippet("Claude Agent SDK").splitlines())
    exec(compile(code, "frameworks.md", "exec"), names)
    asyncio.run(names["main"]())
    with turnlog.open(tmp_path / "turnlog") as home:
        [info] = home.sessions()
        assert any(one.role == "assistant" for one in home.resume(info.id).messages())


def test_a_first_prompt_a_title_and_a_tag_may_be_no_unicode(tmp_path):
    lines = [line(1, None, content="lone \ud800"), {"type": "custom-title", "customTitle": "\udc00"}]
    lines.append({"type": "tag", "tag": "t\udfff"})

    async def work():
        async with TurnlogSessionStore(tmp_path) as store:
            for one in lines:
                await store.append(KEY, [one])
        async with TurnlogSessionStore(tmp_path) as store:
            [summary] = await store.list_session_summaries(KEY["project_key"])
            return await store.load(KEY), summary["data"]

    loaded, data = asyncio.run(work())
    assert loaded == lines
    assert (data["first_prompt"], data["custom_title"], data["tag"]) == ("lone \ud800", "\udc00", "t\udfff")
    with turnlog.open(tmp_path) as home:
        [info] = home.sessions()
        assert (info.title, info.tags) == ("?", ["t?"])


def test_a_store_is_closed_with_any_event_loop(tmp_path):
    async def work():
        async with TurnlogSessionStore(tmp_path) as store:
            await store.append(KEY, [line(1, None)])
            return await store.load(KEY)

    for backend in ("asyncio", "trio"):
        assert len(anyio.run(work, backend=backend)) == 1


def test_a_fork_made_with_turnlog_is_listed(tmp_path):
    with turnlog.open(tmp_path) as home:
        store = TurnlogSessionStore(home)
        asyncio.run(store.append(KEY, [line(1, None)]))
        home.resume("/".join(KEY.values())).fork(id=f"{KEY['project_key']}/forked")
        listed = asyncio.run(store.list_sessions(KEY["project_key"]))
        assert {one["session_id"] for one in listed} == {KEY["session_id"], "forked"}
