"""Hooks into the settings of agents and out again: the user's files are as they were, to the byte."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnlog.errors import AlreadyExists, Corrupt, Invalid, Unsupported
from turnlog.hooks import HookFile, OwnHookFile, agents_without_hooks, hooked_agent, names
from turnlog.hooks.call import HookCall, hook_command, parse_hook_command
from turnlog.hooks.entries import hook_entries
from turnlog.hooks.install import plan_install, plan_uninstall
from turnlog.hooks.places import HookPlaces
from turnlog.hooks.status import status, statuses
from turnlog.machine.edit import make_edit
from turnlog.machine.imprint import Imprints
from turnlog.machine.settings import parse_settings

_EXAMPLES = 8 if settings.default.max_examples <= 100 else settings.default.max_examples
PROGRAM = "/opt/some where/turnlog"
SETTINGS = [name for name in names() if isinstance(hooked_agent(name).file, HookFile)]
OWN = [name for name in names() if isinstance(hooked_agent(name).file, OwnHookFile)]
OTHERS = st.sampled_from([
    {"hooks": [{"type": "command", "command": "ring"}]},
    {"matcher": "Bash", "hooks": [{"type": "command", "command": "test -x /bin/ls && ls || :"}]},
    {"hooks": []},
])  # fmt: skip
TEXTS = st.text(st.sampled_from('ab"\\ é/*,{}[]:'), max_size=6)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str]:
    """An agent, and settings that it reads: somebody's hooks, or none, in one of many hands."""
    name = draw(st.sampled_from(SETTINGS))
    one = hooked_agent(name)
    value: dict[str, Any] = {} if one.file.top_keys else draw(st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3))
    value.pop("hooks", None)
    if draw(st.booleans()):
        events = st.sampled_from([event.name for event in one.events] + ["Other"])
        value["hooks"] = draw(st.dictionaries(events, st.lists(OTHERS, max_size=2), max_size=3))
    items = draw(st.permutations(list(value.items())))
    text = json.dumps(dict(items), indent=draw(st.sampled_from([None, 2, 4, "\t"])), ensure_ascii=draw(st.booleans()))
    if one.settings_file.syntax == "commented":
        text = draw(st.sampled_from(["", "// mine\n", "/* a, { */ "])) + text + draw(st.sampled_from(["", " // end"]))
    text = draw(st.sampled_from([text, text + "\n", "\n" + text, "\ufeff" + text if one.file.takes_bom else text]))
    return name, draw(st.sampled_from([text, text.replace("\n", "\r\n"), ""])) if draw(st.booleans()) else text


class Machine:
    """A user's files, and a home for what is remembered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = HookPlaces(str(folder), {}, str(folder / "project"), Imprints(str(folder / "kept"), "hooks"))

    def path(self, name: str, scope: str = "user") -> Path:
        return Path(self.places.file(hooked_agent(name), scope))

    def install(self, name: str, program: str = PROGRAM, *, scope: str = "user", trust: bool = False) -> None:
        for edit in plan_install(hooked_agent(name), self.places, scope, program, trust=trust):
            make_edit(edit, self.places.imprints)

    def uninstall(self, name: str, scope: str = "user") -> None:
        for edit in plan_uninstall(hooked_agent(name), self.places, scope):
            make_edit(edit, self.places.imprints)

    def write(self, name: str, text: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def ours(name: str, text: str) -> list[str]:
    return [
        one.event
        for one in hook_entries(
            parse_settings(text, syntax=hooked_agent(name).settings_file.syntax), hooked_agent(name)
        )
    ]


@settings(max_examples=_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files())
def test_in_and_out_again_is_as_it_was(tmp_path: Path, file: tuple[str, str]):
    name, text = file
    machine = Machine(tmp_path)
    path = machine.write(name, text)
    machine.install(name)
    installed = path.read_bytes()
    assert sorted(ours(name, installed.decode())) == sorted(event.name for event in hooked_agent(name).events)
    machine.install(name)
    assert path.read_bytes() == installed
    machine.install(name, "/usr/bin/turnlog")
    machine.uninstall(name)
    assert path.read_bytes() == text.encode()
    machine.uninstall(name)
    assert path.read_bytes() == text.encode()


@settings(max_examples=_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.booleans(), st.booleans(), st.booleans())
def test_what_the_user_changes_in_between_stays(
    tmp_path: Path, file: tuple[str, str], is_known: bool, is_reformatted: bool, is_behind: bool
):
    name, text = file
    machine = Machine(tmp_path)
    path = machine.write(name, text)
    before = parse_settings(text, syntax=hooked_agent(name).settings_file.syntax)
    machine.install(name)
    now = parse_settings(path.read_text(), syntax=hooked_agent(name).settings_file.syntax)
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    for value in (now, before):
        value.setdefault("hooks", {}).setdefault("Stop", []).insert(99 if is_behind else 0, mine)
    path.write_text(json.dumps(now, indent=3 if is_reformatted else 2))
    if not is_known:
        machine.places.imprints.forget(str(path))
    machine.uninstall(name)
    left = parse_settings(path.read_text(), syntax=hooked_agent(name).settings_file.syntax)
    assert ours(name, path.read_text()) == []
    place = left["hooks"]["Stop"]
    if hooked_agent(name).settings_file.keeps_places and is_behind and len(place) > len(before["hooks"]["Stop"]):
        assert place.pop(-2) == {"hooks": []}
    if not is_known:  # nobody knows any more that there was an empty list
        before["hooks"] = {
            event: groups for event, groups in before["hooks"].items() if groups or event in left["hooks"]
        }
    assert left == before


def test_a_line_that_was_added_elsewhere_is_all_that_differs(machine: Machine):
    text = '{\n    "model": "opus",\n\n    "permissions": {"allow": ["Bash"]}\n}\n'
    path = machine.write("claude-code", text)
    machine.install("claude-code")
    path.write_text(path.read_text().replace('"opus",\n', '"haiku",\n    "verbose":   true,\n'))
    machine.uninstall("claude-code")
    assert path.read_text() == text.replace('"opus",\n', '"haiku",\n    "verbose":   true,\n')


def test_the_mode_and_a_link_stay(machine: Machine, tmp_path: Path):
    dotfiles = tmp_path / "dotfiles.json"
    dotfiles.write_text("{}")
    dotfiles.chmod(0o640)
    path = machine.path("claude-code")
    path.parent.mkdir(parents=True)
    path.symlink_to(dotfiles)
    machine.install("claude-code")
    assert path.is_symlink()
    assert stat.S_IMODE(dotfiles.stat().st_mode) == 0o640
    assert ours("claude-code", dotfiles.read_text())
    machine.uninstall("claude-code")
    assert path.is_symlink()
    assert dotfiles.read_text() == "{}"


@pytest.mark.parametrize("name", names())
def test_what_was_made_goes_again(machine: Machine, tmp_path: Path, name: str):
    machine.install(name, trust=True)
    assert machine.path(name).exists()
    machine.uninstall(name)
    left = [path for path in tmp_path.rglob("*") if "kept" not in path.parts]
    assert left == []


@pytest.mark.parametrize("name", names())
def test_it_is_told_how_they_stand(machine: Machine, name: str, tmp_path: Path):
    def now() -> Any:
        return status(hooked_agent(name), machine.places, "user")

    assert (now().is_here, now().installed, now().program) == (False, False, None)
    machine.install(name)
    found = now()
    assert (found.is_here, found.installed, found.program, found.is_current) == (True, True, PROGRAM, False)
    assert found.trusted is (False if hooked_agent(name).trusts else None)
    machine.install(name, trust=True)
    assert now().trusted is (True if hooked_agent(name).trusts else None)


@pytest.mark.parametrize("name", OWN)
def test_a_file_of_somebody_else_is_left_alone(machine: Machine, name: str):
    path = machine.write(name, "// mine\n")
    with pytest.raises(AlreadyExists):
        machine.install(name)
    machine.uninstall(name)
    assert path.read_text() == "// mine\n"


@pytest.mark.parametrize("name", OWN)
def test_a_file_of_ours_that_somebody_changed_is_his(machine: Machine, name: str):
    machine.install(name)
    path = machine.path(name)
    text = (
        path.read_text().replace('"hooks": {', '"hooks": {"mine": [{"bash": "ring"}],').replace("try {", "try { mine()")
    )
    path.write_text(text)
    with pytest.raises(AlreadyExists):
        machine.install(name)
    machine.uninstall(name)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("claude-code", '{\n  // mine\n  "a": 1\n}', "line 2, column 3: a comment"),
        ("claude-code", '{"a": 1,}', "line 1, column 8: a comma too many"),
        ("gemini-cli", '{\n  // mine\n  "a": 1,\n}', "line 3, column 9: a comma too many"),
        ("claude-code", '{"a": 1', "line 1, column 8: it ends here"),
        ("claude-code", '{"hooks": []}', "line 1, column 11: hooks is no object"),
        ("claude-code", '{"hooks": {"Stop": {}}}', "line 1, column 20: hooks.Stop is no list"),
        ("claude-code", '{"hooks": {\n"Stop": [{"command": "x"}]}}', "line 2, column 10: hooks.Stop.0 has no list"),
        (
            "claude-code",
            '{"hooks": {"PreToolUse": [{"command": "x"}]}}',
            "line 1, column 27: hooks.PreToolUse.0 has no",
        ),
        (
            "claude-code",
            '{"hooks": {"Other": [{"hooks": [{"type": "command"}]}]}}',
            "line 1, column 33: hooks.Other.0.hooks.0 has no command",
        ),
        ("codex", '{"hooks": {"PreToolUse": "x"}}', "line 1, column 26: hooks.PreToolUse is no list"),
        ("gemini-cli", "\ufeff{}", "line 1, column 2: the whole begins with a byte order mark"),
        ("codex", "\ufeff{}", "line 1, column 2: the whole begins with a byte order mark"),
        ("claude-code", "[]", "line 1, column 1: the whole is no object"),
        ("claude-code", '{"model": 5}', "line 1, column 11: model is no string, so Claude Code reads nothing"),
        ("claude-code", '{"cleanupPeriodDays": true}', "line 1, column 23: cleanupPeriodDays is no number"),
        (
            "claude-code",
            '{"permissions": {"allow": "x"}}',
            "line 1, column 27: permissions.allow is no list",
        ),
        ("codex", '{"hooks": {},\n"model": 1}', "line 2, column 10: model is nothing that Codex takes"),
    ],
)
def test_what_the_agent_would_not_read_is_refused_with_the_place(machine: Machine, name: str, text: str, place: str):
    path = machine.write(name, text)
    with pytest.raises((Corrupt, Invalid)) as caught:
        machine.install(name)
    assert caught.value.message.startswith(f"{path}, {place}")
    assert path.read_text() == text
    found = status(hooked_agent(name), machine.places, "user")
    assert found.installed is False
    assert place in (found.blocked_by or "")


def test_settings_that_are_no_text_are_refused_with_the_file_named_once(machine: Machine):
    path = machine.write("claude-code", "{}")
    path.write_bytes(b"\xff{}")
    with pytest.raises(Corrupt) as caught:
        machine.install("claude-code")
    assert caught.value.message == f"{path} is not UTF-8 at byte 0"
    assert caught.value.hint == "Claude Code would not read it as it is: mend it first; nothing was changed"
    assert status(hooked_agent("claude-code"), machine.places, "user").blocked_by == caught.value.message


def test_settings_that_are_a_pipe_are_not_waited_for(machine: Machine):
    path = machine.path("claude-code")
    path.parent.mkdir()
    os.mkfifo(path)
    refusal = f"{path} could not be read: it is not a regular file"
    assert status(hooked_agent("claude-code"), machine.places, "user").blocked_by == refusal
    assert agents_without_hooks(str(machine.folder), {}) == ["Claude Code"]


def test_comments_stay_where_the_agent_takes_them(machine: Machine):
    text = '{\n  // mine\n  "a": 1, // one\n  "hooks": { "AfterTool": [ /* none */ ] }\n}\n'
    path = machine.write("gemini-cli", text)
    machine.install("gemini-cli")
    assert path.read_text().count("//") == 2 + text.count("//") - 2
    assert "/* none */" in path.read_text()
    machine.uninstall("gemini-cli")
    assert path.read_text() == text


def test_milliseconds_and_names_where_the_agent_wants_them(machine: Machine):
    machine.install("gemini-cli")
    hook = json.loads(machine.path("gemini-cli").read_text())["hooks"]["BeforeAgent"][0]["hooks"][0]
    assert (hook["timeout"], hook["name"]) == (7000, "turnlog")
    machine.install("codex")
    hook = json.loads(machine.path("codex").read_text())["hooks"]["Stop"][0]["hooks"][0]
    assert (hook["timeout"], "name" in hook) == (7, False)


def test_at_most_six_entries():
    assert all(len(hooked_agent(name).events) <= 6 for name in names())
    for name in names():
        assert {"begin", "tool", "end"} <= {event.means for event in hooked_agent(name).events}


def test_the_place_of_somebody_behind_us_is_kept(machine: Machine):
    path = machine.write("codex", '{"hooks": {"Stop": [{"hooks": []}]}}')
    machine.install("codex")
    value = json.loads(path.read_text())
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "mine"}]})
    path.write_text(json.dumps(value))
    machine.install("codex", "/usr/bin/turnlog")
    assert [
        one.group for one in hook_entries(json.loads(path.read_text()), hooked_agent("codex")) if one.event == "Stop"
    ] == [1]
    machine.uninstall("codex")
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    assert json.loads(path.read_text())["hooks"]["Stop"] == [{"hooks": []}, {"hooks": []}, mine]


def test_trust_is_written_only_if_asked_for_and_goes_again(machine: Machine):
    config = machine.path("codex").with_name("config.toml")
    text = 'model = "gpt-5"\n[hooks.state."/other:stop:0:0"]\ntrusted_hash = "sha256:00"\n# mine'
    machine.write("codex", "{}")
    config.write_text(text)
    machine.install("codex")
    assert config.read_text() == text
    machine.install("codex", trust=True)
    assert config.read_text().count("trusted_hash") == 4
    machine.install("codex", "/usr/bin/turnlog", trust=True)
    assert config.read_text().count("trusted_hash") == 4
    assert status(hooked_agent("codex"), machine.places, "user").trusted
    config.write_text(config.read_text().replace("gpt-5", "gpt-6"))
    machine.uninstall("codex")
    assert config.read_text() == text.replace("gpt-5", "gpt-6")
    assert machine.path("codex").read_text() == "{}"


def test_a_configuration_that_codex_cannot_read_is_refused_before_anything_is_changed(machine: Machine):
    machine.write("codex", "{}").with_name("config.toml").write_text("model = \n")
    with pytest.raises(Corrupt, match=r"config\.toml.*line 1"):
        machine.install("codex", trust=True)
    assert machine.path("codex").read_text() == "{}"


@pytest.mark.parametrize(
    ("name", "files", "blocked"),
    [
        ("claude-code", {".claude/settings.json": '{"disableAllHooks": true}'}, "disableAllHooks in"),
        ("claude-code", {"project/.claude/settings.local.json": '{"disableAllHooks": true}'}, "disableAllHooks in"),
        (
            "claude-code",
            {
                ".claude/settings.json": '{"disableAllHooks": true}',
                "project/.claude/settings.json": '{"disableAllHooks": false}',
            },
            None,
        ),
        ("claude-code", {".claude/settings.json": '{"a": 1,}'}, "a comma too many"),
        ("gemini-cli", {".gemini/settings.json": '{"hooksConfig": {"enabled": false}}'}, "hooksConfig.enabled in"),
        ("gemini-cli", {".gemini/settings.json": '{"hooksConfig": {"disabled": ["turnlog"]}}'}, "hooksConfig.disabled"),
        ("gemini-cli", {".gemini/settings.json": '{"hooksConfig": {"disabled": ["other"]}}'}, None),
        ("codex", {".codex/config.toml": "[features]\nhooks = false\n"}, "features.hooks in"),
    ],
)
def test_a_setting_that_keeps_hooks_from_running_is_told(
    machine: Machine, tmp_path: Path, name: str, files: dict[str, str], blocked: str | None
):
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = status(hooked_agent(name), machine.places, "user").blocked_by
    assert found is None if blocked is None else blocked in (found or "")


def test_the_files_of_a_project(machine: Machine, tmp_path: Path):
    machine.install("claude-code", scope="project")
    assert ours("claude-code", (tmp_path / "project/.claude/settings.json").read_text())
    machine.uninstall("claude-code", "project")
    assert not (tmp_path / "project").exists()
    with pytest.raises(Unsupported):
        machine.install("copilot-cli", scope="project")


def test_hooks_of_a_project_are_trusted_by_the_user(machine: Machine, tmp_path: Path):
    machine.install("codex", scope="project", trust=True)
    assert not (tmp_path / "project/.codex/config.toml").exists()
    assert f'"{tmp_path}/project/.codex/hooks.json:stop:0:0"' in (tmp_path / ".codex/config.toml").read_text()
    assert status(hooked_agent("codex"), machine.places, "project").trusted
    machine.uninstall("codex", "project")
    assert not (tmp_path / ".codex").exists()


def test_a_folder_that_a_variable_names(tmp_path: Path):
    for name in names():
        variable = hooked_agent(name).folder.variable
        path = hooked_agent(name).folder.path("/home/ada", {variable: str(tmp_path)})
        assert path.startswith(str(tmp_path)), name
        assert hooked_agent(name).folder.path("/home/ada", {}).startswith("/home/ada/"), name


@pytest.mark.parametrize("program", ["/usr/bin/turnlog", "/a b/turn'log", '/a"b$(x)/turnlog', "/é\n/turnlog"])
def test_a_command_is_known_again(program: str):
    for home in ("", "/a home's folder"):
        assert parse_hook_command(hook_command(program, "codex", "Stop", home), "codex") == HookCall(program, home)
    assert parse_hook_command(hook_command(program, "codex", "Stop"), "claude-code") is None


FOREIGN_COMMANDS = [
    None, 3, "ring", "turnlog hook codex Stop", "test -x 'a && b hook codex Stop",
    "test -x /x/turnlog && echo ' hook codex Stop 2>/dev/null || :",
    "test -x '/x && echo hook codex Stop 2>/dev/null || :",
]  # fmt: skip


@pytest.mark.parametrize("command", FOREIGN_COMMANDS)
def test_a_command_of_somebody_else_is_not(command: object):
    assert parse_hook_command(command, "codex") is None


@pytest.mark.parametrize("name", names())
def test_the_home_that_was_chosen_is_the_one_that_is_filled(machine: Machine, name: str, tmp_path: Path):
    folder = str(tmp_path / "a home's folder")
    machine.places = machine.places._replace(target_home=folder)
    before = statuses(machine.places)
    machine.install(name, PROGRAM)
    row = next(row for row in statuses(machine.places) if row.agent == name)
    assert (row.installed, row.fills, row.program) == (True, folder, PROGRAM)
    text = machine.path(name).read_text()
    machine.install(name, PROGRAM)
    assert machine.path(name).read_text() == text
    machine.uninstall(name)
    assert statuses(machine.places) == before


def test_a_command_with_an_open_quotation_mark_stops_nothing(machine: Machine):
    path = machine.path("claude-code")
    path.parent.mkdir(parents=True, exist_ok=True)
    command = "test -x /x/turnlog && echo ' hook claude-code Stop 2>/dev/null || :"
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    path.write_text(text)
    assert not next(row for row in statuses(machine.places) if row.agent == "claude-code").installed
    machine.install("claude-code", PROGRAM)
    machine.uninstall("claude-code")
    assert json.loads(path.read_text()) == json.loads(text)
