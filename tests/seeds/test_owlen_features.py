"""What Owlen does, done with Turnlog."""

from datetime import timedelta

import pytest

from tests.seeds.scene import texts, work
from turnlog import Usage
from turnlog.thread.report import Stats


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.999, "59s"), (60, "1m 0s"), (61, "1m 1s"), (3599, "59m 59s"), (3600, "1h 0m"), (90061, "25h 1m")],
)
def test_a_duration_is_for_people(seconds, text):
    assert Stats(0, 0, 0, 0, 0, timedelta(seconds=seconds), None, None).duration_text == text


def test_statistics_of_a_session(home, s, clock):
    s.user("hi")
    work(s, "c1", "ok")
    clock.tick(65_000)
    s.assistant("done")
    stats = home.resume(s.id).stats()
    assert (stats.messages, stats.tool_calls, stats.duration_text) == (4, 1, "1m 5s")
    assert (stats.last_at - stats.first_at) == timedelta(seconds=65)


def test_tokens_are_estimated_without_a_model(s):
    s.user("word " * 100)
    assert 80 < s.context().tokens < 200
    assert s.context().tokens.method == "text"


def test_a_local_model_has_usage_and_no_price(s):
    s.assistant("a", usage=Usage(input_tokens=10), model="qwen3:32b")
    assert s.cost().own.unpriced == {"qwen3:32b": Usage(input_tokens=10)}
    s.assistant("b", usage=Usage(input_tokens=10, cost_micros=0), model="qwen3:32b")
    assert s.cost().own.models == {"qwen3:32b": 0}


def test_checkpoints_have_names_and_are_listed_in_order(home, project):
    s = home.create(workspace=project)
    for label in ("first", "second", "third"):
        (project / "a.txt").write_text(label)
        s.checkpoint(label)
    assert [checkpoint.label for checkpoint in home.resume(s.id).checkpoints()] == ["first", "second", "third"]


def test_a_checkpoint_keeps_the_session_as_it_was(home, project):
    s = home.create(workspace=project)
    s.user("one")
    s.set("mode", "plan")
    named = s.checkpoint("before")
    s.user("two")
    s.set("mode", "act")
    s.rewind(to=named)
    assert (texts(s.context()), s.get("mode")) == (["one"], "plan")


def test_a_rewind_to_a_name_restores_the_files(home, project):
    s = home.create(workspace=project)
    s.checkpoint("before")
    with s.turn():
        s.user("go")
        (project / "a.txt").write_text("changed")
        (project / "new.txt").write_text("new")
    (named,) = [checkpoint for checkpoint in s.checkpoints() if checkpoint.label == "before"]
    s.rewind(to=named)
    assert (project / "a.txt").read_text() == "one\n"
    assert not (project / "new.txt").exists()


def test_changes_are_shown_per_file(home, project):
    s = home.create(workspace=project)
    before = s.checkpoint("before")
    (project / "a.txt").write_text("one\nmore\n")
    (project / "b.txt").unlink()
    (project / "c.txt").write_text("three\n")
    after = s.checkpoint("after")
    found = s.diff(before, after)
    assert [(item.path, item.action) for item in found] == [
        ("a.txt", "modified"), ("b.txt", "deleted"), ("c.txt", "created"),
    ]  # fmt: skip
    assert "+more" in found[0].lines
    assert "-two" in found[1].lines
    assert s.diff(before) == found


def test_prompts_answers_and_calls_are_in_one_order(home, s):
    s.user("one")
    work(s, "c1", "ok")
    s.user("two")
    s.assistant("done")
    assert [m.role for m in home.resume(s.id).messages()] == ["user", "assistant", "tool", "user", "assistant"]


def test_a_call_has_its_arguments_its_result_and_whether_it_worked(home, s):
    work(s, "c1", "boom", is_error=True)
    call, result = home.resume(s.id).messages()
    assert (call.blocks[0].name, call.blocks[0].input) == ("bash", {"command": "run c1"})
    assert (result.blocks[0].content, result.blocks[0].is_error) == ("boom", True)


def test_clearing_begins_anew(s):
    s.user("one")
    s.rewind(to=0)
    assert list(s.context()) == []


def test_the_last_turns_stay_verbatim_when_the_rest_is_compressed(s):
    for number in range(20):
        s.user(f"question {number}")
    s.compact(keep=8)
    assert texts(s.context())[1:] == [f"question {number}" for number in range(12, 20)]
