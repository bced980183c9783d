"""What tells tool calls apart, and the changes that some of them are."""

import pytest

from turnlog.view.filechange import changes, is_diff
from turnlog.view.toolcall import arguments_text, main_argument, unwrapped_output

CALLS = {
    "Bash": ({"command": "npm test", "description": "Run it"}, "npm test"),
    "Bash of several lines": ({"command": "cd a\nmake"}, "cd a …"),
    "Read": ({"file_path": "src/a.py", "limit": 10}, "src/a.py"),
    "Codex": ({"command": ["bash", "-lc", "ls -la | wc"]}, "ls -la | wc"),
    "Codex, plain": ({"command": ["git", "commit", "-m", "two words"]}, "git commit -m 'two words'"),
    "Codex, in a text": ('{"command":["ls"]}', "ls"),
    "Grep": ({"pattern": "x+", "path": "src"}, "x+"),
    "several files": ({"files": [{"path": "a"}, {"path": "b"}]}, "a b"),
    "unknown": ({"scale": 2, "deep": {"a": 1}}, "2"),
    "unknown, several": ({"x": 1, "y": "a b"}, "x=1 y='a b'"),
    "a plan": ({"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}]}, "1 of 2 done"),
    "nothing": (None, ""),
    "no JSON": ("{not json", "{not json"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_telling_argument(name: str):
    value, expected = CALLS[name]
    assert main_argument(value) == expected


def test_a_command_alone_is_shown_as_it_is_and_the_rest_as_json():
    assert arguments_text({"command": "a\nb"}) == "a\nb"
    assert arguments_text({"command": "a", "timeout": 5}) == '{\n  "command": "a",\n  "timeout": 5\n}'
    assert arguments_text({}) == ""


@pytest.mark.parametrize("names", [("old_string", "new_string"), ("oldString", "newString"), ("oldText", "newText")])
def test_an_edit_is_a_diff(names: tuple[str, str]):
    [change] = changes("Edit", {"file_path": "a.py", names[0]: "one\ntwo\nthree\n", names[1]: "one\n2\nthree\nfour\n"})
    assert change.path == "a.py"
    assert change.lines == ["@@ -1,3 +1,4 @@", " one", "-two", "+2", " three", "+four"]
    assert (change.plus, change.minus) == (2, 1)


def test_several_edits_of_a_file():
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]
    [change] = changes("MultiEdit", {"file_path": "a.py", "edits": edits})
    assert (change.plus, change.minus) == (1, 2)


def test_a_patch_of_codex():
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ x\n-1\n+2\n*** Add File: c.py\n+3\n*** End Patch"
    )
    for value in (patch, {"input": patch}, {"command": ["bash", "-lc", f"apply_patch <<'E'\n{patch}\nE"]}):
        first, second = changes("apply_patch", value)
        assert (first.path, first.lines) == ("a.py → b.py", ["@@ x", "-1", "+2"])
        assert (second.path, second.plus, second.minus) == ("c.py", 1, 0)


def test_a_line_of_a_patch_ends_with_its_line_end_alone():
    patch = "*** Begin Patch\r\n*** Update File: a.c\r\n-x\r\n+a\x0cb\u2028c\r\n*** End Patch\r\n"
    [change] = changes("apply_patch", {"input": patch})
    assert (change.path, change.lines) == ("a.c", ["-x", "+a\x0cb\u2028c"])


def test_a_file_that_is_written():
    assert changes("Write", {"file_path": "a", "content": "1\n2\n"})[0].lines == ["+1", "+2"]
    assert changes("Read", {"file_path": "a", "content": "1"}) == []
    assert changes("Bash", {"command": "ls"}) == []


def test_a_large_edit_is_not_compared_line_by_line():
    old, new = "\n".join("ab" * 2000), "\n".join("ba" * 2000)
    [change] = changes("Edit", {"path": "a", "old_text": old, "new_text": new})
    assert (change.plus, change.minus) == (4000, 4000)


def test_a_list_of_things_to_do():
    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}, {"content": "c"}]
    assert arguments_text({"todos": todos}) == "[x] a\n[~] b\n[ ] c"


def test_the_json_around_what_was_printed_is_left_out():
    assert unwrapped_output('{"output":"a\\nb","metadata":{"exit_code":0}}') == ("a\nb", False)
    assert unwrapped_output('{"output":"a","metadata":{"exit_code":2}}') == ("a", True)
    for text in ('{"output":"a","more":1}', '{"output":"a', "plain", '{"other":1}'):
        assert unwrapped_output(text) == (text, False)


@pytest.mark.parametrize(
    "text",
    [
        '{"output":"a","output":1}',
        '{"output":"a","output":null}',
        '{"output":"a","metadata":' + "[" * 5_000 + "]" * 5_000 + "}",
    ],
)
def test_any_program_may_print_an_object_that_begins_like_a_frame(text: str):
    assert unwrapped_output(text) == (text, False)


def test_arguments_that_are_no_unicode_are_shown():
    assert "a" in arguments_text(["a", "\ud800", 1])
    assert "b" in arguments_text({"a": "\ud800", "c": "b"})


def test_what_a_tool_printed_may_be_a_diff():
    assert is_diff("diff --git a/x b/x\n--- a/x")
    assert not is_diff("- a list\n- of things")
