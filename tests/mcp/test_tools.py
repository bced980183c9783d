"""What the tools tell: within their bytes, of what they may tell of, and nothing that is nobody's business."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.machine import claude_session
from tests.mcp.desk import Desk, everything_of
from turnlog import Text, ToolCall, Usage
from turnlog.log.ids import handle_of
from turnlog.mcp import tools as mcp_tools
from turnlog.mcp.protocol import Refused, encoded

KEY = "sk-ant-api03-" + "Ab3dEf9hIj" * 9 + "AA"
OLD = "0a1b2c3d-1111-4222-8333-444444444444"
OWN = "9f8e7d6c-1111-4222-8333-555555555555"


def write(text: str = "The checkout is flaky", output: str = "1 failed", **more: Any) -> str:
    """A session of ours: a prompt, a tool call and its output, an answer."""
    with turnlog.open(checkpoints=False) as home:
        session = home.create(**{"workspace": ".", "agent": "my-agent", **more})
        with session.turn():
            session.user(text)
            session.assistant(
                [Text("Looking."), ToolCall(id="c1", name="bash", input={"command": "pytest -x"})],
                model="claude-sonnet-4-5",
                usage=Usage(input_tokens=1_234_567, output_tokens=80),
            )
            session.tool_result("c1", output)
            session.assistant("It was a race in the fixture.")
        return session.id


def size(result: dict[str, Any]) -> int:
    return len(encoded({"jsonrpc": "2.0", "id": 1_000, "result": result}))


def test_all_descriptions_are_small_and_only_rewind_changes_anything(person: Path):
    desk = Desk(allow_rewind=True)
    tools = desk.ask("tools/list")["tools"]
    files = {path.stem for path in Path(mcp_tools.__path__[0]).glob("*.py")} - {"__init__"}
    assert {tool["name"] for tool in tools} == files
    assert files >= {"search_sessions", "read_session", "list_sessions", "list_changes", "usage", "rewind"}
    assert len(json.dumps({"tools": tools}, ensure_ascii=False)) <= 6_000
    assert [tool["name"] for tool in tools if not tool["annotations"]["readOnlyHint"]] == ["rewind"]
    assert len(desk.initialized["instructions"].encode()) <= 600
    desk.close()
    desk = Desk()
    assert "rewind" not in [tool["name"] for tool in desk.ask("tools/list")["tools"]]
    with pytest.raises(Refused, match="no tool 'rewind'"):
        desk.call("rewind", session="x")
    desk.close()


def test_a_hit_is_a_place_that_can_be_read(desk: Desk):
    ours = write()
    claude_session(Path(os.environ["HOME"]), str(Path.cwd()), OLD, "Why does the basket forget its vouchers?")
    for query, session in (("race fixture", ours), ("vouchers", OLD)):
        [hit, *_] = desk.data("search_sessions", query=query)["hits"]
        assert hit["session"] == session
        page = desk.data("read_session", session=hit["session"], around=hit["entry"], limit=3)
        assert any(query.split()[0] in row["text"] for row in page["entries"])
    [row, *_] = desk.data("list_sessions", query="vouchers")["sessions"]
    assert (row["session"], row["agent"], row["turns"]) == (OLD, "claude-code", 1)
    assert " 1 turn $" in desk.call("list_sessions", query="vouchers")["content"][0]["text"]
    assert "claude-code, 1 turn" in {row["description"] for row in desk.ask("resources/list")["resources"]}
    assert desk.data("read_session", session=row["handle"])["session"] == OLD


def test_a_search_and_a_reading_keep_within_their_bytes_and_go_on(desk: Desk):
    output = "\n".join(f"line {number} of the flaky test ünïcödé" for number in range(3_000))
    assert len(output) > 100_000
    ids = {write(f"The flaky checkout again, number {number} " + "x" * 200, output) for number in range(12)}
    seen: list[str] = []
    cursor: str | None = None
    while True:
        done = desk.call("search_sessions", query="flaky checkout", limit=50, **({"cursor": cursor} if cursor else {}))
        assert size(done) <= 4_000
        seen += [hit["session"] for hit in done["structuredContent"]["hits"]]
        cursor = done["structuredContent"]["cursor"]
        if cursor is None:
            break
    assert ids <= set(seen)
    [session, *_] = ids
    done = desk.call("read_session", session=session, limit=50)
    assert size(done) <= 12_000
    assert "more lines" in done["content"][0]["text"]
    [tool] = [row["entry"] for row in done["structuredContent"]["entries"] if row["role"] == "tool"]
    whole, after = "", None
    while after is None or "+" in str(after):
        arguments = {"around": tool, "limit": 1} if after is None else {"after": after}
        done = desk.call("read_session", session=session, **arguments)
        assert size(done) <= 12_000
        [row] = done["structuredContent"]["entries"]
        whole, after = whole + row["text"], done["structuredContent"]["cursor"]
    assert whole == f"< bash\n{output}"


@pytest.mark.parametrize("limit", [0, 51, -1, "5", True, 2.5, [1]])
def test_a_limit_that_is_none_is_said(desk: Desk, limit: Any):
    for tool, more in (("search_sessions", {"query": "x"}), ("list_sessions", {}), ("read_session", {"session": "x"})):
        assert "no number from 1 to 50" in desk.error(tool, limit=limit, **more)


def test_wrong_arguments_are_told_to_the_model(desk: Desk):
    assert "query is missing" in desk.error("search_sessions")
    assert "there is no argument 'path'" in desk.error("search_sessions", query="x", path="y")
    assert "not one of day, week" in desk.error("usage", by="colour")
    assert "not a time" in desk.error("usage", since="soon")
    assert "either a session or a path" in desk.error("list_changes")
    assert "is not a cursor" in desk.error("search_sessions", query="x", cursor="../..")
    assert "no entry 77" in desk.error("read_session", session=write(), around=77)
    assert desk.data("search_sessions", query="flaky", limit=None, cursor=None)["hits"]


def test_whatever_sessions_and_tools_are_called_it_fits(desk: Desk):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(workspace=".", agent="my-agent", title="wombat " + "long " * 5_000)
        session.user("hi")
        session.assistant([ToolCall(id="c", name="x" * 5_000, input={"q": "voucher"})])
        session.tool_result("c", "voucher " + "ü" * 9_000)
    [hit] = desk.data("search_sessions", query="wombat")["hits"]
    assert desk.data("read_session", session=hit["session"], around=hit["entry"])["entries"][0]["text"] == "hi"
    for query in ("voucher", "wombat", "voucher " + "w" * 190):
        done = desk.call("search_sessions", query=query, limit=50)
        assert done["structuredContent"]["hits"]
        assert size(done) <= 4_000
    assert size(desk.call("list_sessions")) <= 4_000
    assert size(desk.call("read_session", session=session.id)) <= 12_000


def test_usage_writes_tokens_in_full(desk: Desk):
    write()
    done = desk.call("usage", by="model")
    assert "1234567" in done["content"][0]["text"]
    assert done["structuredContent"]["groups"][0]["input"] == 1_234_567


@pytest.mark.parametrize(
    "query",
    [
        'why does "the basket forget', "basket: localhost:8080 forgets it", "basket " + "and more words " * 400,
        "Traceback: basket\n" + "\n".join(f"  File x{number}.py:{number}" for number in range(120)), "-basket",
    ],
)  # fmt: skip
def test_a_sentence_or_an_error_message_that_is_no_query_is_taken_as_words(desk: Desk, query: str):
    session = write("The basket forgets its vouchers")
    done = desk.call("search_sessions", query=query)
    assert [hit["session"] for hit in done["structuredContent"]["hits"]] == [session]
    assert "Taken as plain words" in done["content"][0]["text"]
    assert "there is no role:boss" in desk.error("search_sessions", query="basket role:boss")


def test_folders_may_be_called_anything(person: Path, tmp_path: Path):
    odd = tmp_path / "we\"b, sh\\op ' workspace:x"
    odd.mkdir()
    os.chdir(odd)
    mine = write("The voucher bug")
    write("The voucher bug of another", workspace=str(tmp_path / "webshop"))
    desk = Desk()
    assert desk.sessions("voucher") == [mine]
    desk.close()


# ── what may be told ──────────────────────────────────────────────────────────────────────────────


def test_in_the_home_folder_only_its_own_sessions_are_there(person: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(person)
    mine = write("The voucher bug of no project", workspace=str(person))
    below = write("The voucher bug of a project", workspace=str(person / "shop"))
    desk = Desk()
    assert desk.sessions("voucher") == [mine]
    assert "no session" in desk.error("read_session", session=below)
    desk.close()


def test_a_session_of_another_project_is_not_there(desk: Desk, person: Path, tmp_path: Path):
    mine = write("The voucher bug of this project")
    other = write("The voucher bug of another project", workspace=str(tmp_path / "other"))
    upper = write("The voucher bug of a third project", workspace=str(tmp_path / "WEBSHOP"))
    above = write("The voucher bug of all projects", workspace=str(tmp_path))
    wide = (f"voucher OR workspace:{tmp_path}/other", f"session:{other} OR session:{upper}", "(voucher OR bug) AND the")
    for query in (
        "voucher", 'voucher "', f"voucher workspace:{tmp_path}/other", "voucher -x", f"session:{other}", *wide,
    ):  # fmt: skip
        told = desk.call("search_sessions", query=query)
        assert {hit["session"] for hit in told["structuredContent"].get("hits", [])} <= {mine}, query
    assert [row["session"] for row in desk.data("list_sessions")["sessions"]] == [mine]
    assert desk.data("usage", by="session")["total"]["sessions"] == 1
    for hidden in (other, upper, above, f"{tmp_path}/home/sessions/{other}.jsonl", "latest", "@"):
        for tool in ("read_session", "list_changes"):
            assert "no session" in (told := desk.error(tool, session=hidden)) or "is no id" in told
        with pytest.raises(Refused):
            desk.ask("resources/read", uri=f"turnlog://session/{hidden}")
    everywhere = Desk(everywhere=True)
    assert set(everywhere.sessions("voucher", limit=9)) == {mine, other, upper, above}
    everywhere.close()
    there = Desk(workspace=str(tmp_path))
    assert set(there.sessions("voucher", limit=9)) == {mine, other, upper, above}
    there.close()


def test_worktrees_belong_to_it_and_what_only_says_so_does_not(person: Path, tmp_path: Path):
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)

    git("init", "-q", ".")
    git("commit", "-qm", "one", "--allow-empty")
    git("worktree", "add", "-q", str(tmp_path / "tree"))
    there = write("The voucher bug", workspace=str(tmp_path / "tree"))
    stranger = tmp_path / "stranger"
    (stranger / ".git").mkdir(parents=True)
    hidden = write("The voucher bug of a stranger", workspace=str(stranger))
    false = Path(".git/worktrees/false")
    false.mkdir()
    (false / "gitdir").write_text(f"{stranger}/.git\n")
    desk = Desk()
    assert desk.sessions("voucher") == [there]
    assert "no session" in desk.error("read_session", session=hidden)
    desk.close()
    os.chdir(tmp_path / "tree")
    here = write("The voucher bug once more", workspace=str(tmp_path / "webshop"))
    desk = Desk()
    assert set(desk.sessions("voucher")) == {there, here}
    desk.close()


def test_it_may_have_any_number_of_worktrees(person: Path, monkeypatch: pytest.MonkeyPatch):
    trees = [f"{Path.cwd()}-{number:0100}" for number in range(100)]
    monkeypatch.setattr("turnlog.mcp.scope.worktrees_of", lambda top: trees)
    there = write("The voucher bug", workspace=trees[-1])
    desk = Desk()
    assert desk.sessions("voucher") == [there]
    assert [row["session"] for row in desk.data("list_sessions")["sessions"]] == [there]
    assert desk.data("usage")["total"]["sessions"] == 1
    desk.close()


def test_a_session_whose_file_was_copied_can_be_read(desk: Desk, person: Path):
    path = claude_session(person, str(Path.cwd()), OLD, "The voucher bug")
    copy = path.parents[1] / "-backup" / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    assert desk.sessions("voucher") == [OLD, OLD]
    assert desk.data("read_session", session=OLD)["entries"]


def test_in_the_home_folder_only_its_own_sessions_are_told_of(person: Path):
    mine = write("The voucher bug", workspace=str(person))
    write("The voucher bug of a project", workspace=str(person / "project"))
    os.chdir(person)
    desk = Desk()
    assert desk.sessions("voucher") == [mine]
    assert desk.data("usage", by="session")["total"]["sessions"] == 1
    assert [row["session"] for row in desk.data("list_sessions")["sessions"]] == [mine]
    desk.close()


def test_what_only_comes_near_is_marked_and_behind_what_has_all_words(desk: Desk):
    near = write("The voucher of the basket vanished")
    both = write("The voucher and its basket are cached")
    told = desk.call("search_sessions", query="cached voucher baskets")
    assert [hit["session"] for hit in told["structuredContent"]["hits"]] == [both, near]
    assert "these have most of the rarest" in told["content"][0]["text"]
    assert [hit["has"] for hit in told["structuredContent"]["hits"]] == [
        ["cached", "baskets", "voucher"],
        ["baskets", "voucher"],
    ]
    hits = desk.data("search_sessions", query="cached voucher")["hits"]
    assert ["has" in hit for hit in hits] == [False, True]


@pytest.mark.parametrize("path", ["../other/a.txt", "/etc/passwd", "link/a.txt", "~/.ssh/id_rsa"])
def test_files_outside_are_refused(desk: Desk, tmp_path: Path, path: str):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.txt").write_text("x")
    os.symlink(tmp_path / "other", "link")
    assert "is not in" in desk.error("list_changes", path=path)


def test_a_key_never_leaves(person: Path):
    pem = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7" * 40 + "\n-----END RSA PRIVATE KEY-----"
    output = f"{'filler words ' * 300}\nexport ANTHROPIC_API_KEY={KEY}\n{pem}\n{'more filler ' * 300}\nvoucher"
    with turnlog.open() as home:
        session = home.create(workspace=".", agent="my-agent", title=f"Try {KEY} now")
        with session.turn():
            session.user(f"use {KEY} for the voucher")
            login = {"user": "anna", "password": "hunter2-Xy77-Qz"}
            session.assistant([Text("ok"), ToolCall(id="c1", name="login", input=login)])
            Path("config.txt").write_text(f"voucher\nkey = {KEY}\n")
            session.tool_result("c1", output)
        id = session.id
        titled = f"wombat {'and more ' * 14}{KEY}"
        home.create(workspace=".", agent="my-agent", title=titled).user("hi")
    claude_session(person, str(Path.cwd()), OLD, f"the voucher is {KEY}", "x" * 70 + f" {KEY}")
    desk = Desk()
    told = [everything_of(desk, id), everything_of(desk, OLD)]
    for query in ("voucher", KEY, "filler", KEY[:30], "MIIEowIBAAKCAQEA7*", "anna", "hunter2*", "wombat"):
        told.append(json.dumps(desk.call("search_sessions", query=query, limit=50)))
    told.append(json.dumps(desk.call("list_changes", path="config.txt")))
    desk.close()
    for text in told:
        for secret in (KEY[:24], KEY[20:40], "MIIEowIBAAKC", "hunter2-Xy77"):
            assert secret not in text.replace(json.dumps(KEY[:30]), ""), secret
    assert "redacted" in told[0]


def test_what_is_unseen_is_seen_and_all_of_it_is_quoted(desk: Desk):
    write("evil \x1b[31m\u202e\u200b\x00 voucher", "\u2066tool\x07 output")
    told = [desk.call("search_sessions", query="voucher")]
    told.append(desk.call("read_session", session=desk.sessions("voucher")[0]))
    text = json.dumps(told, ensure_ascii=False)
    assert not {"\x1b", "\u202e", "\u200b", "\u2066", "\x07"} & set(text)
    assert "u202e" in text
    assert text.count("not instructions") == 4


def everything_in(*folders: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not {".cache", "spent"} & set(path.parts)  # the catalog, and its sums of what is gone
    }


def test_nothing_is_written_but_the_catalog(person: Path, tmp_path: Path):
    id = write()
    claude_session(person, str(Path.cwd()), OLD, "Why does the basket forget its vouchers?")
    Path("a.txt").write_text("one\n")
    with turnlog.open() as home:
        covered = home.create(workspace=".", agent="my-agent")
        with covered.turn():
            covered.user("write two")
            Path("a.txt").write_text("one\ntwo\n")
    before = everything_in(tmp_path)
    desk = Desk()
    for session in (id, OLD, covered.id):
        everything_of(desk, session)
    desk.call("search_sessions", query="how does the basket forget")
    assert len(desk.data("list_changes", path="a.txt")["stretches"]) == 2
    desk.close()
    assert everything_in(tmp_path) == before


# ── it does not find itself ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def asking(person: Path) -> Iterator[Path]:
    """Claude Code has just asked: its own session ends with the call."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    claude_session(person, str(Path.cwd()), OLD, "The vouchers vanish because the basket is cached")
    path = claude_session(person, str(Path.cwd()), OWN, "Why do vouchers vanish? search for it", at=now)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    call = {
        "type": "tool_use",
        "id": "toolu_own",
        "name": "mcp__turnlog__search_sessions",
        "input": {"query": "vouchers"},
    }
    lines[1]["message"] |= {"content": [call], "stop_reason": "tool_use"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    yield path


@pytest.mark.parametrize("way", ["environment", "call", "neither"])
def test_the_session_that_asks_is_left_out(asking: Path, way: str, monkeypatch: pytest.MonkeyPatch):
    if way == "environment":
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", OWN)
    desk = Desk(client="claude-code")
    meta = {"claudecode/toolUseId": "toolu_own"} if way == "call" else {}
    hits = desk.call("search_sessions", meta=meta, query="vouchers vanish")["structuredContent"]["hits"]
    assert {hit["session"] for hit in hits} == {OLD}
    first = desk.call("search_sessions", meta=meta, query="vouchers", limit=1)["structuredContent"]["hits"]
    assert [hit["session"] for hit in first] == [OLD]  # it takes no other's place
    rows = desk.call("list_sessions", meta=meta)["structuredContent"]["sessions"]
    assert [row["session"] for row in rows] == [OLD]
    named = desk.call("search_sessions", meta=meta, query=f"vouchers session:{OWN}")["structuredContent"]["hits"]
    assert {hit["session"] for hit in named} == {OWN}
    assert desk.data("read_session", session=OWN)["entries"]
    desk.close()


@pytest.mark.parametrize("words", ["session:{}", "id:{}", "session:{handle}", "id:={}", "session:{upper}"])
def test_the_session_that_asks_is_there_if_it_is_asked_for(person: Path, words: str):
    own = write("The voucher bug")
    desk = Desk(client="codex-mcp-client")
    query = words.format(own, handle=handle_of(own), upper=own.upper())
    for tool, rows in (("search_sessions", "hits"), ("list_sessions", "sessions")):
        asked = desk.call(tool, meta={"threadId": own}, query=f"voucher {query}")["structuredContent"]
        assert [row["session"] for row in asked[rows]] == [own], tool
        assert desk.call(tool, meta={"threadId": own}, query="voucher")["structuredContent"][rows] == []
    desk.close()


def test_what_another_agent_says_of_itself_is_not_believed_of_this_one(asking: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", OLD)  # it was started in the shell of that one
    desk = Desk(client="gemini-cli-mcp-client")
    assert OLD in desk.sessions("vouchers vanish")
    desk.close()


def test_codex_says_which_thread_it_is(asking: Path):
    desk = Desk(client="codex-mcp-client")
    done = desk.call("search_sessions", meta={"threadId": OWN}, query="vouchers vanish")
    assert {hit["session"] for hit in done["structuredContent"]["hits"]} == {OLD}
    desk.close()


@pytest.mark.parametrize(
    "tool",
    ["mcp__turnlog__search_sessions", "mcp_turnlog_search_sessions", "turnlog_search_sessions", "search_sessions"],
)
def test_calls_of_these_tools_are_left_out_unless_asked_for(desk: Desk, tool: str):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(workspace=".", agent="my-agent")
        session.user("hello there")
        session.assistant([ToolCall(id="c1", name=tool, input={"query": "vouchers"})])
        session.tool_result("c1", "somebody said vouchers")
    assert desk.sessions("vouchers") == []
    assert desk.sessions(f"vouchers tool:{tool}") == [session.id] * 2
    text = json.dumps(desk.data("read_session", session=session.id))
    assert "somebody said" not in text
    assert "somebody said" in json.dumps(desk.data("read_session", session=session.id, around=5, limit=1))


def test_a_session_that_was_written_anew_is_read_for_secrets_from_its_beginning(desk: Desk, person: Path):
    part = "hunter2-" * 3
    folder = str(Path.cwd())
    path = claude_session(person, folder, OLD, "plant roses", f"the last part is {part}", "thank you")
    assert part in str(desk.data("read_session", session=f"claude-code:{OLD}"))
    path.unlink()
    claude_session(person, folder, OLD, f"password: {part}", f"the last part is {part}", "thanks")
    assert part not in str(desk.data("read_session", session=f"claude-code:{OLD}"))
