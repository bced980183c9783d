"""What sofos does, done with Turnlog."""

import pytest

import turnlog
from tests.seeds.scene import assert_paired, texts, work
from tests.store.actors import at_once
from turnlog import Conflict, Text, Thinking, ToolCall, Usage

GPT = "gpt-5.5"


def test_what_people_see_is_apart_from_what_the_model_sees(home, s):
    s.user("[SYSTEM: plan mode] Fix it", display="Fix it")
    s.user("tool output is cut at 2000 bytes", display=False)
    work(s, "c1", "1 failed", is_error=True)
    s.assistant("Done", display="**Done**")
    for session in (s, home.resume(s.id)):
        shown = [
            m.display if isinstance(m.display, str) else None for m in session.messages() if m.display is not False
        ]
        assert shown == ["Fix it", None, None, "**Done**"]
        assert texts(session.context())[:2] == ["[SYSTEM: plan mode] Fix it", "tool output is cut at 2000 bytes"]
        assert texts(session.context())[-1] == "Done"


def test_the_transcript_stays_when_the_models_part_is_compacted(s):
    for number in range(30):
        s.user(f"question {number}")
        s.assistant(f"answer {number}")
    s.compact("so far", keep=20)
    assert len(s.messages()) == 60
    assert len(s.context()) == 21


def test_the_command_that_a_tool_ran_is_there_on_replay(home, s):
    work(s, "c1", "ok")
    (call,) = [b for m in home.resume(s.id).messages() for b in m.blocks if isinstance(b, ToolCall)]
    assert (call.name, call.input) == ("bash", {"command": "run c1"})


def test_counters_survive_resuming_the_peak_included(home, s):
    s.assistant("a", usage=Usage(input_tokens=300_000, output_tokens=5), model=GPT)
    s.assistant("b", usage=Usage(input_tokens=10, cache_read_tokens=90, cache_write_tokens=7), model=GPT)
    again = home.resume(s.id)
    again.assistant("c", usage=Usage(output_tokens=1), model=GPT)
    usage = home.resume(s.id).usage()
    assert usage.own == Usage(input_tokens=300_010, cache_read_tokens=90, cache_write_tokens=7, output_tokens=6)
    assert usage.peak_input_tokens == 300_000


def test_prices_flip_once_a_prompt_crosses_the_threshold(home, s):
    """Per request, as it is billed; sofos made the whole session expensive. 5 dollars a million, 10 above 272,000."""
    s.assistant("a", usage=Usage(input_tokens=272_000), model=GPT)
    assert s.cost().own.micros == 1_360_000
    s.assistant("b", usage=Usage(input_tokens=272_001), model=GPT)
    assert home.resume(s.id).cost().own.micros == 1_360_000 + 2_720_010


def test_each_response_is_priced_at_the_model_that_answered(s):
    s.assistant("a", usage=Usage(input_tokens=1_000), model=GPT)
    s.assistant("b", usage=Usage(input_tokens=1_000), model="claude-haiku-4-5")
    assert s.cost().own.models == {GPT: 5_000, "claude-haiku-4-5": 1_000}


def test_a_preview_is_the_first_user_text_cut_at_120_characters(home, s):
    s.assistant("Hello!")
    s.user("   ")
    s.user("ж" * 119 + "🚀🚀")
    assert home.resume(s.id).preview() == "ж" * 119 + "🚀…"
    other = home.create()
    other.user("ж" * 119 + "🚀")
    assert other.preview() == "ж" * 119 + "🚀"
    assert home.create().preview() == ""


def test_a_preview_skips_injected_preambles(s):
    s.user([Text("[SYSTEM: The following context was compacted]")])
    s.user("[SYSTEM: read-only mode]\n\nWhat does main.rs do?")
    assert s.preview() == "What does main.rs do?"


def test_the_list_is_newest_first_with_what_a_picker_needs(home, clock):
    first = home.create(title="first")
    clock.tick(1000)
    second = home.create(title="second")
    clock.tick(1000)
    first.user("more")
    rows = home.sessions()
    assert [row.id for row in rows] == [first.id, second.id]
    assert (rows[0].title, rows[0].seq) == ("first", first.seq)
    assert rows[0].created_at < rows[1].created_at < rows[0].updated_at
    assert home.resume(rows[0].id).stats().messages == 1


def test_model_mode_preset_and_system_prompt_are_restored(home, s):
    s.system("You are sofos.")
    s.set("model", "claude-opus-4-8")
    s.set("readonly", True)
    s.set("permission_preset", "sandboxed-ask")
    s.user("hi")
    again = home.resume(s.id)
    assert again.context().system == "You are sofos."
    assert again.facts == {"model": "claude-opus-4-8", "readonly": True, "permission_preset": "sandboxed-ask"}


def test_a_session_killed_in_a_tool_call_can_be_resumed(home, s):
    s.user("go")
    s.assistant([Text("Running."), ToolCall(id="c1", name="bash"), ToolCall(id="c2", name="bash")])
    s.tool_result("c1", "ok")
    again = home.resume(s.id)
    assert [call.id for call in again.pending()] == ["c2"]
    assert_paired(again.context())
    assert again.context()[-1].blocks[0].is_error
    assert len(again.messages()) == 3


def test_a_result_whose_call_is_gone_is_not_sent_and_its_neighbours_are(s):
    s.user("go")
    call = s.assistant([ToolCall(id="c1", name="bash")])
    s.tool_result("c1", "ok")
    s.user("and then?")
    s.edit(call, None)
    assert texts(s.context()) == ["go", "and then?"]
    assert_paired(s.context())


def test_clearing_keeps_what_was_said_and_spent(s):
    s.user("one")
    s.assistant("1", usage=Usage(input_tokens=5))
    s.rewind(to=0)
    assert list(s.context()) == []
    s.user("fresh")
    assert texts(s.context()) == ["fresh"]
    assert s.usage().own.input_tokens == 5
    s.undo()
    assert texts(s.context()) == ["one", "1"]


def test_a_long_result_is_shortened_for_the_model_only(home, s):
    s.user("go")
    s.assistant([ToolCall(id="c1", name="bash")])
    long = s.tool_result("c1", "x" * 5_000)
    result = long.blocks[0]
    short = f"{'x' * 500}\n...[truncated 4000 chars]...\n{'x' * 500}"
    s.edit(long, [turnlog.ToolResult(call=result.call, content=short)])
    again = home.resume(s.id)
    assert texts(again.context())[-1] == short
    assert texts(again.messages())[-1] == "x" * 5_000
    assert_paired(again.context())


def test_a_compaction_never_begins_with_a_result(s):
    for number in range(10):
        s.user(f"question {number}")
        work(s, f"c{number}", "ok")
        s.assistant("done")
    for keep in range(25):
        s.compact("so far", keep=keep)
        assert_paired(s.context())
        s.uncompact()


def test_a_compaction_that_fails_leaves_the_conversation_as_it_was(home, s):
    s.user("one")
    before = list(s.context())
    other = home.resume(s.id)
    s.user("two")
    with pytest.raises(Conflict):
        other.compact("too late")
    with pytest.raises(turnlog.Invalid):
        s.compact("sum", keep=-1)
    assert list(s.context())[:1] == before
    assert s.compactions() == []


def test_tokens_of_a_rejected_summary_are_spent(s):
    s.spend(Usage(input_tokens=900, output_tokens=2), model="claude-haiku-4-5", why="summary rejected: too short")
    assert s.usage().own.input_tokens == 900
    assert s.cost().own.micros == 910


def test_a_turn_that_failed_is_kept(home, s):
    with pytest.raises(RuntimeError), s.turn():
        s.user("one-shot")
        raise RuntimeError("the provider said 500")
    again = home.resume(s.id)
    assert texts(again.messages()) == ["one-shot"]
    (_, end) = again.entries(kind="turn")
    assert (end.state, end.error) == ("failed", "RuntimeError: the provider said 500")


def test_instructions_of_the_project_and_of_the_person_are_joined(project, s, monkeypatch, folder):
    monkeypatch.setenv("TURNLOG_HOME", str(folder))
    assert turnlog.instructions(project) is None
    (project / "AGENTS.md").write_text("Use tabs.\n")
    (project / ".turnlog").mkdir()
    (project / ".turnlog/instructions.md").write_text("Answer in German.\n")
    both = turnlog.instructions(project)
    assert both == "Use tabs.\n\nAnswer in German."
    s.system("You are an agent.")
    s.system(both)
    s.user("hi")
    s.compact("so far")
    assert s.context().system == "You are an agent.\n\nUse tabs.\n\nAnswer in German."


def test_reasoning_and_signatures_come_back_to_the_letter(home, s):
    blocks = [
        Thinking(text="hm", provider="anthropic", data={"signature": "c2ln"}),
        Thinking(provider="openai", data={"id": "rs_1", "encrypted_content": "eA=="}),
        ToolCall(id="w1", name="web_search", input={"query": "☃"}, by="provider"),
    ]
    s.assistant(blocks)
    assert home.resume(s.id).messages()[0].blocks == blocks


def test_saving_goes_on_after_damage_to_what_was_saved_before(home, s, folder):
    s.user("one")
    s.user("two")
    path = folder / "sessions" / f"{s.id}.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[2] = b'{"type":"message","seq":3,"garbled'
    path.write_bytes(b"\n".join(lines))
    with turnlog.open(folder) as other:
        again = other.resume(s.id)
        again.user("three")
        assert texts(other.resume(s.id).messages()) == ["two", "three"]
        assert len(again.damage) == 1
        assert [row.id for row in other.sessions()] == [s.id]


def test_eight_writers_at_once_lose_nothing(folder):
    told = at_once(*(("sessions", folder, f"w{number}", 5) for number in range(8)))
    made = {session_id for ids in told for session_id in ids}
    with turnlog.open(folder) as home:
        assert {row.id for row in home.sessions()} == made
        assert len(made) == 40
        for session_id in made:
            assert texts(home.resume(session_id).messages()) == [f"hello from {session_id}"]


def test_a_deleted_session_is_out_of_the_list_and_can_be_restored(home, s):
    s.user("one")
    home.delete(s.id)
    assert home.sessions() == []
    home.restore(s.id)
    assert texts(home.resume(s.id).messages()) == ["one"]
