"""What rho does, done with Turnlog."""

import os
import stat

import pytest

import turnlog
from tests.seeds.scene import assert_paired, log_of, texts, work
from turnlog import Ambiguous, Image, NotFound, Text, ToolCall, TurnlogError, Usage
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk


def test_a_session_is_found_by_the_beginning_of_its_id(home):
    first, second = home.create(id="0a1b-one"), home.create(id="0a1c-two")
    assert home.find("0a1b") == first.id
    assert home.find("0a1c-two") == second.id
    with pytest.raises(Ambiguous, match="0a1b-one, 0a1c-two"):
        home.find("0a1")
    with pytest.raises(NotFound):
        home.find("ffff")


def test_an_empty_beginning_is_no_name(home):
    """rho lets it match every session."""
    home.create()
    with pytest.raises(NotFound):
        home.find("")


def test_an_incomplete_tool_turn_is_completed_for_the_model(home, s):
    s.user("go")
    s.assistant([ToolCall(id="a", name="x"), ToolCall(id="b", name="x")])
    s.tool_result("a", "A")
    assert_paired(home.resume(s.id).context())
    assert [call.id for call in home.resume(s.id).pending()] == ["b"]


def test_a_truncated_last_line_is_dropped_and_named(home, s, folder):
    s.user("one")
    s.user("two")
    path = log_of(folder, s)
    path.write_bytes(path.read_bytes()[:-9])
    with turnlog.open(folder) as other:
        again = other.resume(s.id)
        assert texts(again.messages()) == ["one"]
        assert [damage.kind for damage in again.damage] == ["torn"]


def test_folders_and_files_are_private(home, s, folder):
    mask = os.umask(0)
    try:
        s.user([Image("image/png", data=b"x" * 70_000)])
        home.create().user("one")
    finally:
        os.umask(mask)
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_dir()} == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()} == {0o600}


@pytest.mark.parametrize(
    ("one", "other"), [("a/b-c", "a-b/c"), ("a/b", "a-b"), ("a b", "a-b"), ("проект", "------"), ("A", "a")]
)
def test_sessions_are_grouped_by_workspace_without_collisions(home, tmp_path, one, other):
    for name in (one, other):
        (tmp_path / "w" / name).mkdir(parents=True)
        home.create(workspace=tmp_path / "w" / name, title=name)
    for name in (one, other):
        assert [row.title for row in home.sessions(workspace=tmp_path / "w" / name)] == [name]


def test_a_session_is_resumed_from_anywhere(home, project, tmp_path, monkeypatch):
    session = home.create(workspace=project)
    session.user("one")
    monkeypatch.chdir(tmp_path)
    again = home.resume(home.find(session.handle))
    again.user("two")
    assert (again.workspace, texts(again.messages())) == (str(project), ["one", "two"])


def test_all_workspaces_are_in_one_list(home, project, tmp_path):
    made = {home.create(workspace=place).id for place in (project, tmp_path)} | {home.create().id}
    assert {row.id for row in home.sessions()} == made


def test_what_could_not_be_written_was_not_said(folder):
    """rho appends before a message enters its memory, so that a failed write ends the turn."""

    class BrokenDisk(Disk):
        is_broken = False

        def write_once(self, fd: int, data: bytes) -> int:
            if self.is_broken:
                raise OSError(28, "No space left on device")
            return super().write_once(fd, data)

    disk = BrokenDisk()
    with turnlog.Home(connect(str(folder), disk=disk)) as home:
        session = home.create()
        session.user("one")
        disk.is_broken = True
        with pytest.raises(TurnlogError):
            session.user("two")
        assert texts(session.messages()) == ["one"]
        disk.is_broken = False
        session.user("three")
        assert texts(home.resume(session.id).messages()) == ["one", "three"]


def test_a_short_handle_resumes_a_session(home, s):
    """What to print at the end: rho prints a uuid."""
    assert len(s.handle) == 8
    assert home.resume(home.find(s.handle)).id == s.id


def test_denied_and_skipped_calls_are_answered_as_failures(home, s):
    s.user("go")
    s.assistant([ToolCall(id="a", name="rm"), ToolCall(id="b", name="ls")])
    s.tool_result("a", "denied by the user", is_error=True)
    s.tool_result("b", "Skipped because an earlier tool call failed", is_error=True)
    again = home.resume(s.id)
    assert [m.blocks[0].is_error for m in again.messages() if m.role == "tool"] == [True, True]
    assert list(again.context()) == again.messages()


def test_arguments_of_a_call_are_any_json(home, s):
    arguments = {"z": [1, 2.5, None, True], "a": {"ü": "☃"}, "n": -7}
    s.assistant([ToolCall(id="a", name="x", input=arguments)])
    assert home.resume(s.id).messages()[0].blocks[0].input == arguments


def test_a_title_can_be_changed_and_is_in_the_list(home, s):
    s.set("title", "first")
    s.set("title", "second")
    assert [row.title for row in home.sessions()] == ["second"]


def test_a_response_that_was_cut_off_is_kept(home, s):
    s.user("go")
    s.assistant("Half an ans", stop="aborted", usage=Usage(input_tokens=9, output_tokens=4))
    s.assistant("", stop="error", error={"status": 529})
    again = home.resume(s.id)
    assert [m.stop for m in again.messages()] == [None, "aborted", "error"]
    assert again.messages()[2].error == {"status": 529}
    assert again.usage().own.output_tokens == 4


def test_branches_of_the_conversation_can_be_walked(home, s):
    one = s.user("one")
    s.assistant("first try")
    s.rewind(to=one)
    s.assistant("second try")
    old, new = sorted(s.branches(), key=lambda branch: branch.head)
    assert (old.is_current, new.is_current) == (False, True)
    s.rewind(to=old.head)
    assert texts(home.resume(s.id).context()) == ["one", "first try"]
    assert len(s.branches()) == 2


def test_a_compaction_says_what_it_saved(home, s):
    s.user("x " * 4_000)
    before = s.context().tokens
    s.compact("sum", tokens_before=before, tokens_after=10, usage=Usage(input_tokens=before), model="m")
    (record,) = home.resume(s.id).compactions()
    assert (record.entry.tokens_before, record.entry.tokens_after, record.removed) == (before, 10, 1)
    assert s.usage().models["m"].input_tokens == before


def test_a_request_is_in_the_ledger_once_and_unknown_is_not_zero(home, s):
    """The ledger of rho: one row per request, in micro-dollars, never written twice."""
    usage = Usage(input_tokens=10, cost_micros=7)
    for _ in range(3):
        s.spend(usage, model="m", request="event-1")
    s.spend(Usage(input_tokens=1), request="event-2")
    assert s.usage().own == Usage(input_tokens=11, cost_micros=7)
    assert s.usage().models[""].cost_micros is None


def test_what_advisors_and_summaries_cost_is_counted(s):
    s.spend(Usage(input_tokens=1_000), model="claude-haiku-4-5", why="advisor", request="r1")
    s.compact("sum", usage=Usage(input_tokens=1_000), model="claude-haiku-4-5")
    assert s.cost().own.micros == 2_000


def test_subagents_have_sessions_of_their_own_and_go_with_their_parent(home, s):
    call = s.assistant([ToolCall(id="c1", name="task")]).blocks[0]
    child = s.spawn(agent="explorer", call=call.id)
    grandchild = child.spawn(agent="deeper")
    grandchild.user("found")
    assert [row.id for row in s.children()] == [child.id]
    assert home.resume(grandchild.id).messages()[0].blocks == [Text("found")]

    def delete_all(session):
        for row in session.children():
            delete_all(home.resume(row.id))
        home.delete(session.id)

    delete_all(s)
    assert home.sessions() == []


def test_a_rewind_of_files_is_shown_before_it_is_done(home, project):
    session = home.create(workspace=project)
    with session.turn():
        session.user("go")
        (project / "a.txt").write_text("changed\n")
        (project / "b.txt").unlink()
        (project / "new.txt").write_text("new\n")
    plan = session.plan_rewind(turns=1)
    assert {step.path: step.action for step in plan.steps} == {
        "a.txt": "modify", "b.txt": "create", "new.txt": "delete",
    }  # fmt: skip
    assert (project / "new.txt").exists()
    session.rewind(turns=1)
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "b.txt"]
    assert len(session.branches()) == 2


def test_a_message_may_look_otherwise_to_people(home, s):
    s.user("<expanded template>", display="/review")
    assert home.resume(s.id).messages()[0].display == "/review"
    assert texts(home.resume(s.id).context()) == ["<expanded template>"]


def test_a_session_deleted_while_it_is_open_takes_no_more(home, s):
    """rho holds a lease; here the writer is told."""
    s.user("one")
    home.delete(s.id)
    with pytest.raises(NotFound):
        s.user("two")
    home.restore(s.id)
    assert texts(home.resume(s.id).messages()) == ["one"]


def test_messages_of_system_user_assistant_and_tool_come_back(home, s):
    s.system("sys")
    s.user("u")
    work(s, "c1", "r")
    s.assistant("a")
    assert home.resume(s.id).messages() == s.messages()
