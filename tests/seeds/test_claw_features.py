"""What claw-code does, done with Turnlog."""

import os

import pytest

import turnlog
from tests.seeds.scene import assert_paired, log_of, texts, work
from tests.store.actors import actors
from turnlog import Conflict, Message, NotFound, Text, Thinking, ToolCall, Usage
from turnlog.thread.summary import META


def test_every_message_is_on_the_disk_as_it_happens(s, folder):
    path = log_of(folder, s)
    for number in range(5):
        s.user(f"message {number}")
        assert path.read_bytes().endswith(b"}\n")
        assert f"message {number}".encode() in path.read_bytes().splitlines()[-1]


def test_a_compaction_is_a_record_with_count_removed_and_summary(home, s):
    for number in range(6):
        s.user(f"question {number}")
        s.assistant(f"answer {number}")
    s.compact("first summary", keep=4)
    s.user("more")
    s.compact("second summary", keep=2)
    records = home.resume(s.id).compactions()
    assert len(records) == 2
    assert [(record.removed, record.summary) for record in records] == [(8, "first summary"), (3, "second summary")]
    assert [record.entry.seq for record in records] == sorted(e.seq for e in s.entries(kind="compaction"))
    s.uncompact()
    assert [record.is_cancelled for record in s.compactions()] == [False, True]
    s.compact("third")
    assert s.compactions()[-1].removed == 5


def test_a_fork_has_a_parent_and_a_branch_name(home, s):
    s.user("one")
    s.compact("sum")
    fork = s.fork(name="another idea")
    fork.user("two")
    (row,) = [row for row in home.sessions() if row.id == fork.id]
    assert (row.fork.session, row.fork.name) == (s.id, "another idea")
    assert texts(home.resume(fork.id).context()) == ["sum", "two"]
    assert texts(s.context()) == ["sum"]
    assert home.resume(s.id).fork().id != fork.id


def test_usage_belongs_to_the_message_it_paid_for(home, s):
    usage = Usage(input_tokens=10, output_tokens=2, cache_write_tokens=3, cache_read_tokens=4)
    s.user("hi")
    s.assistant("hello", usage=usage)
    s.assistant("no usage known")
    assert [message.usage for message in home.resume(s.id).messages()] == [None, usage, None]


def test_a_summary_without_a_model_says_scope_tools_requests_pending_and_files(home, s):
    s.system("be brief")
    s.user("Look at src/main.rs and src/lib.rs")
    work(s, "c1", "fn main() {}")
    s.user("Now fix it.\nTODO: also update docs/guide.md")
    s.assistant("Fixed. Next: run the tests.")
    s.user("go on")
    s.assistant("Running them.")
    s.compact(keep=2)
    (summary, *kept) = home.resume(s.id).context()
    assert texts(kept) == ["go on", "Running them."]
    assert summary.blocks[0].text.splitlines()[2:] == [
        "- Scope: 5 messages (2 user, 2 assistant, 1 tool)",
        "- Tools used: bash",
        "- Last requests:",
        "  - Look at src/main.rs and src/lib.rs",
        "  - Now fix it. TODO: also update docs/guide.md",
        "- Pending work:",
        "  - TODO: also update docs/guide.md",
        "  - Fixed. Next: run the tests.",
        "- Key files: src/main.rs, src/lib.rs, docs/guide.md",
        "- Current work: Fixed. Next: run the tests.",
    ]
    assert s.context().system == "be brief"
    assert s.usage().own == Usage()


def test_the_system_prompt_is_neither_summarised_nor_removed(s):
    s.system("TODO: read docs/rules.md")
    s.user("one")
    s.user("two")
    s.compact(keep=1)
    assert "rules.md" not in texts(s.context())[0]
    assert s.context().system == "TODO: read docs/rules.md"
    assert [record.removed for record in s.compactions()] == [1]


def test_a_summary_without_a_model_is_the_same_every_time(home, s):
    for number in range(8):
        s.user(f"question {number} about a/{number}.py")
        s.assistant("ok")
    fork = s.fork()
    s.compact(keep=3)
    fork.compact(keep=3)
    assert texts(s.context()) == texts(fork.context())


def test_what_a_summary_without_a_model_replaces_stays(s):
    for number in range(8):
        s.user(f"question {number}")
    before = s.messages()
    s.compact(keep=2)
    assert len(s.context()) == 3
    assert s.messages() == before
    s.uncompact()
    assert list(s.context()) == before


def test_a_summary_without_a_model_never_splits_a_call_from_its_result(s):
    s.user("go")
    s.assistant([ToolCall(id="a", name="x"), ToolCall(id="b", name="y")])
    s.tool_result("b", "B")
    s.tool_result("a", "A")
    work(s, "c", "C")
    s.assistant("done")
    for keep in range(7):
        s.compact(keep=keep)
        assert_paired(s.context())
        s.uncompact()


def test_an_edit_holds_in_a_summary_without_a_model(s):
    one = s.user("the password is hunter2")
    s.user("never mention this")
    s.edit(one, "the password is elsewhere")
    s.edit(s.messages()[1], None)
    s.compact()
    (text,) = texts(s.context())
    assert "hunter2" not in text
    assert "never mention" not in text
    assert "elsewhere" in text


def test_a_summary_that_a_model_wrote_is_carried_along(s):
    s.user("one")
    s.compact("A model wrote this.")
    s.user("two")
    s.compact()
    s.user("three")
    s.compact()
    (text,) = texts(s.context())
    assert text.count("A model wrote this.") == 1
    assert s.context()[0].meta[META]["requests"] == ["two", "three"]


def test_nothing_to_leave_out_is_said(s):
    s.user("one")
    with pytest.raises(turnlog.Invalid, match="nothing to summarise"):
        s.compact(keep=5)
    assert s.compactions() == []


def test_a_log_needs_no_rotation(s, folder):
    """3 MiB, where claw moves its file away above 256 KiB."""
    for number in range(60):
        s.user(f"{number} " + "x" * 50_000)
    assert [path.name for path in (folder / "sessions").iterdir()] == [log_of(folder, s).name]
    assert len(s.messages()) == 60


def test_prompts_have_their_times(s, clock):
    begin = clock.now
    s.user("one")
    clock.tick(1500)
    s.user("two")
    prompts = [(m.blocks[0].text, int(m.at.timestamp() * 1000) - begin) for m in s.messages() if m.role == "user"]
    assert prompts == [("one", 0), ("two", 1500)]


def test_model_and_workspace_are_known(home, project):
    session = home.create(workspace=project)
    session.set("model", "claude-sonnet-4-6")
    again = home.resume(session.id)
    assert (again.get("model"), again.workspace) == ("claude-sonnet-4-6", str(project))


def test_thinking_keeps_its_signature(home, s):
    block = Thinking(text="hm", provider="anthropic", data={"signature": "abc"})
    s.assistant([block, Text("so")])
    assert home.resume(s.id).messages()[0].blocks[0] == block


def test_the_latest_is_not_the_empty_session_that_was_just_made(home, clock):
    old = home.create()
    old.user("work")
    clock.tick(1000)
    home.create()
    assert home.resume().id == old.id


def test_where_all_are_empty_the_newest_is_the_latest(home, clock):
    home.create()
    clock.tick(1000)
    newest = home.create()
    assert home.resume().id == newest.id


def test_the_latest_of_any_workspace_or_of_one(home, project, tmp_path, clock):
    here = home.create(workspace=project)
    here.user("here")
    clock.tick(1000)
    there = home.create(workspace=tmp_path)
    there.user("there")
    assert home.resume().id == there.id
    assert home.resume(workspace=project).id == home.find("latest", project) == here.id


def test_a_session_of_another_workspace_says_where_it_belongs(home, project, tmp_path):
    session = home.create(workspace=project)
    assert home.resume(session.id).workspace == str(project)
    assert home.sessions(workspace=tmp_path) == []


def test_sessions_are_listed_looked_up_switched_forked_and_deleted(home, s):
    s.user("one")
    fork = s.fork(name="b")
    assert {row.id for row in home.sessions()} == {s.id, fork.id}
    assert home.find(s.handle) == s.id
    assert home.exists(fork.id)
    home.delete(fork.id)
    with pytest.raises(NotFound):
        home.find(fork.id)
    assert not home.exists(fork.id)
    assert [row.id for row in home.sessions()] == [s.id]


def test_a_failed_resume_changes_nothing(home, s, folder):
    s.user("one")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(NotFound, match="no session 'nobody'"):
        home.resume("nobody")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_the_last_messages_are_at_hand(s):
    for number in range(10):
        s.user(f"message {number}")
    assert texts(s.messages(last=3)) == ["message 7", "message 8", "message 9"]


def test_a_compacted_session_is_the_same_session(home, s):
    s.user("one")
    s.compact("sum")
    assert [row.id for row in home.sessions()] == [s.id]
    again = home.resume(s.id)
    again.user("two")
    assert texts(again.context()) == ["sum", "two"]


def test_the_newest_is_the_one_last_written_to_and_not_the_one_last_touched(home, clock, folder):
    first = home.create()
    first.user("a")
    clock.tick(1000)
    second = home.create()
    second.user("b")
    os.utime(log_of(folder, first), (2**31, 2**31))
    assert [row.id for row in home.sessions()] == [second.id, first.id]


def test_times_never_run_backwards(s, clock):
    times = []
    for step in (0, 5, -1000, 3):
        clock.tick(step)
        times.append(s.user("x").at)
    assert times == sorted(times)


def test_who_comes_too_late_is_told_who_was_faster(home, s, folder):
    s.user("begin")
    with actors(("nodes", folder, s.id, "other", 1)) as (other,):
        other.go()
        other.hear()
        with pytest.raises(Conflict, match=f"process {other.pid}"):
            s.user("too late")
    s.refresh()
    s.user("now")
    assert texts(s.messages()) == ["begin", "other 0", "now"]


def test_disk_space_is_known_and_given_back(home, s):
    s.user([turnlog.Image("image/png", data=os.urandom(100_000))])
    held = home.disk()
    home.purge(s.id)
    home.gc()
    assert sum(home.disk().values()) < sum(held.values()) - 100_000


def test_a_session_says_whether_its_store_is_well(home, s):
    assert home.health()["ok"] is True


def test_stats_and_costs_are_there_after_resuming(home, s):
    s.user("hi")
    s.assistant("hello", usage=Usage(input_tokens=1_000), model="claude-haiku-4-5")
    again = home.resume(s.id)
    assert again.stats().messages == 2
    assert again.usage().own.input_tokens == 1_000
    assert again.cost().own.micros == 1_000


def test_a_message_of_any_role_is_kept(home, s):
    for role in ("system", "user", "assistant", "tool"):
        s.append(Message(role=role, blocks=[Text(role)]))
    assert [message.role for message in home.resume(s.id).messages()] == ["system", "user", "assistant", "tool"]
