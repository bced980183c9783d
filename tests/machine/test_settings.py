"""Settings of other programs: what is changed is changed, and not a byte of the rest."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import Conflict, Corrupt, Invalid, Unavailable
from turnlog.machine.settings import MISSING, SettingsFile, parse_settings, value_at, with_item, with_value, without

KEPT = """\
// mine
{
\t"z": 1, // the last letter first
\t/* of */ "hooks": {
\t\t"Stop": [
\t\t\t{"command": "ring"} // loud
\t\t]
\t},
\t"a": "\\u00e9"
}
"""
KEYS = st.text(st.sampled_from('ab"\\ é\n'), max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
INDENTS = st.sampled_from([None, 2, 4, "\t"])


def test_a_value_that_is_added_leaves_every_line_as_it_was() -> None:
    text = with_value(KEPT, ["general", "days"], 36500, syntax="commented")
    assert text == KEPT.replace('"\\u00e9"\n', '"\\u00e9",\n\t"general": {\n\t\t"days": 36500\n\t}\n')
    assert without(text, ["general"], syntax="commented") == KEPT


def test_an_item_comes_after_the_comment_of_the_one_before() -> None:
    text = with_item(KEPT, ["hooks", "Stop"], {"command": "log"}, syntax="commented")
    new = '\t\t\t{"command": "ring"}, // loud\n\t\t\t{\n\t\t\t\t"command": "log"\n\t\t\t}\n'
    assert text == KEPT.replace('\t\t\t{"command": "ring"} // loud\n', new)
    assert without(text, ["hooks", "Stop", 1], syntax="commented") == KEPT


@given(OBJECTS, INDENTS, st.lists(KEYS, min_size=1, max_size=3), VALUES, st.booleans())
def test_a_value_is_set_and_nothing_else_is(
    before: dict, indent: int | str, path: list, value: object, crlf: bool
) -> None:
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    text = text.replace("\n", "\r\n") if crlf else text
    node, is_blocked = before, False
    for key in path[:-1]:
        node = node.get(key, {}) if isinstance(node, dict) else node
        is_blocked = is_blocked or not isinstance(node, dict)
    if is_blocked:
        with pytest.raises(Invalid):
            with_value(text, path, value)
        return
    after = with_value(text, path, value)
    wanted = json.loads(json.dumps(before))
    inner = wanted
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    assert json.loads(after) == parse_settings(after) == wanted
    assert list(json.loads(after)) == list(wanted)
    assert "\r\n" not in text or "\n" not in after.replace("\r\n", "")
    inner.pop(path[-1])
    assert json.loads(without(after, path)) == wanted
    assert value_at(without(after, path), path) is MISSING


@given(OBJECTS, INDENTS, VALUES)
def test_an_item_is_appended_and_taken_out_again(before: dict, indent: int | str, item: object) -> None:
    before = {**before, "list": [1]}
    text = json.dumps(before, indent=indent)
    after = with_item(text, ["list"], item)
    assert json.loads(after) == {**before, "list": [1, item]}
    assert without(after, ["list", 1]) == text


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{ }\n"])
def test_what_is_empty_gets_its_first_key(text: str) -> None:
    assert json.loads(with_value(text, ["a", "b"], 1)) == {"a": {"b": 1}}


@pytest.mark.parametrize("text", ["// mine", "// mine\n", "/* mine */\r\n// and this\r\n", "\ufeff// mine\n"])
def test_what_holds_only_comments_keeps_them(text: str) -> None:
    after = with_value(text, ["a"], 1, syntax="commented")
    assert parse_settings(after, syntax="commented") == {"a": 1}
    assert after.startswith(text.rstrip())


def test_of_two_keys_that_are_called_the_same_the_last_one_counts() -> None:
    assert with_value('{"a": 1, "a": 2}', ["a"], 3) == '{"a": 1, "a": 3}'
    assert without('{"a": 1, "b": 0, "a": 2}', ["a"]) == '{"b": 0}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,}', "line 1, column 8: a comma too many"),
        ('{\n  "a": 1 // one\n}', "line 2, column 10: a comment"),
        ('{\n"a" 1}', "line 2, column 5: no colon"),
        ('{"a": NaN}', "line 1, column 7: no value"),
        ('{"a": 1', "line 1, column 8: it ends here"),
        ("{} {}", "line 1, column 4: more after the end"),
        ('{"a": "\\x"}', "line 1, column 7: no value"),
        ("[" * 5000, "too deep"),
    ],
)
def test_what_its_own_program_would_not_read_is_refused_with_the_place(text: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(Corrupt, match=re.escape(place)) as caught:
        SettingsFile(str(path)).change(lambda text: with_value(text, ["b"], 1))
    assert caught.value.message.startswith(str(path))
    assert path.read_text() == text


def test_a_comma_too_many_is_taken_where_its_program_takes_it() -> None:
    assert with_value('{\n  "a": 1,\n}', ["b"], 2, syntax="jsonc") == '{\n  "a": 1,\n  "b": 2,\n}'
    with pytest.raises(Corrupt):
        parse_settings('{\n  "a": 1,\n}', syntax="commented")


def test_a_file_behind_a_link_keeps_its_mode_and_the_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "settings.json", tmp_path / "settings.json"
    real.parent.mkdir()
    real.write_text('{"a": 1}\n')
    real.chmod(0o640)
    link.symlink_to(real)
    settings = SettingsFile(str(link))
    assert settings.change(lambda text: with_value(text, ["b"], 2))
    assert not settings.change(lambda text: with_value(text, ["b"], 2))
    assert link.is_symlink()
    assert real.read_text() == '{"a": 1, "b": 2}\n'
    assert real.stat().st_mode & 0o777 == 0o640
    assert os.listdir(real.parent) == ["settings.json"]


def test_a_file_that_is_not_there_is_made_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / ".agent" / "settings.json"
    assert SettingsFile(str(path)).value(["b"]) is MISSING
    assert not path.exists()
    SettingsFile(str(path)).change(lambda text: with_value(text, ["b"], 2))
    assert path.read_text() == '{\n  "b": 2\n}\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_somebody_else_writes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")

    def edit(text: str) -> str:
        path.write_text('{"theirs": 1}')
        return with_value(text, ["ours"], 1)

    with pytest.raises(Conflict):
        SettingsFile(str(path)).change(edit)
    assert path.read_text() == '{"theirs": 1}'
    assert os.listdir(tmp_path) == ["settings.json"]


def test_what_cannot_be_read_or_is_no_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(Unavailable, match="could not be read"):
        SettingsFile(str(tmp_path / "folder")).text()
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: to read it would wait for ever
    with pytest.raises(Unavailable, match="it is not a regular file"):
        SettingsFile(str(tmp_path / "pipe")).text()
    (tmp_path / "bytes").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(Corrupt, match="not UTF-8 at byte 7"):
        SettingsFile(str(tmp_path / "bytes")).text()


def test_a_file_that_cannot_be_written_says_what_to_check() -> None:
    """It may be a file of ours, which nobody should change by hand."""
    with pytest.raises(Unavailable, match="could not be written") as caught:
        SettingsFile("/proc/none/settings.json").change(lambda text: '{"a": 1}')
    assert caught.value.hint == "check its owner, its mode, and the room on its disk"
