"""The server into the settings of agents and out again: the user's files are as they were, to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnlog.errors import AlreadyExists, Corrupt, Invalid, NotFound, Unsupported
from turnlog.hooks import hooked_agent as hooked
from turnlog.hooks.install import plan_install as hooking
from turnlog.hooks.install import plan_uninstall as unhooking
from turnlog.hooks.places import HookPlaces
from turnlog.machine.edit import make_edit
from turnlog.machine.imprint import Imprints
from turnlog.machine.settings import parse_settings
from turnlog.machine.settings.toml import toml_value
from turnlog.mcp.agents import server_agent, server_names
from turnlog.mcp.install import ServerPlaces, installing, server_status, server_statuses, uninstalling

_EXAMPLES = 8 if settings.default.max_examples <= 100 else settings.default.max_examples
PROGRAM = "/opt/some where/turnlog"
JSON = [name for name in server_names() if server_agent(name).syntax is not None]
TEXTS = st.text(st.sampled_from('ab"\\ é/*,{}[]:'), max_size=6)


class Machine:
    """A user's files, and a home for what is remembered."""

    def __init__(self, folder: Path, filled: str = "") -> None:
        self.folder = folder
        kept = str(folder / "kept")
        self.places = ServerPlaces(str(folder), {}, str(folder / "project"), Imprints(kept, "mcp"), filled)
        self.hooks = HookPlaces(str(folder), {}, str(folder / "project"), Imprints(kept, "hooks"))

    def path(self, name: str, scope: str = "user") -> Path:
        return Path(self.places.file(server_agent(name), scope))

    def install(self, name: str, options: list[str] | None = None, *, scope: str = "user") -> None:
        for edit in installing(server_agent(name), self.places, scope, PROGRAM, options):
            make_edit(edit, self.places.imprints)

    def uninstall(self, name: str, scope: str = "user") -> None:
        for edit in uninstalling(server_agent(name), self.places, scope):
            make_edit(edit, self.places.imprints)

    def hook(self, name: str) -> None:
        for edit in hooking(hooked(name), self.hooks, "user", PROGRAM, trust=True):
            make_edit(edit, self.hooks.imprints)

    def unhook(self, name: str) -> None:
        for edit in unhooking(hooked(name), self.hooks, "user"):
            make_edit(edit, self.hooks.imprints)

    def write(self, name: str, text: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def entry(self, name: str) -> Any:
        agent, text = server_agent(name), self.path(name).read_text()
        value = toml_value(text) if agent.syntax is None else parse_settings(text, syntax=agent.syntax)
        for key in agent.path:
            value = value[key]
        return value


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str]:
    """An agent, and settings that it reads: somebody's servers, or none, in one of many hands."""
    name = draw(st.sampled_from(JSON))
    agent = server_agent(name)
    value: dict[str, Any] = draw(st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3))
    value.pop(agent.path[0], None)
    if draw(st.booleans()):
        other = st.sampled_from([{"command": "ring"}, {"command": "x", "args": ["mcp"]}])
        value[agent.path[0]] = draw(st.dictionaries(TEXTS, other, max_size=2))
    items = draw(st.permutations(list(value.items())))
    text = json.dumps(dict(items), indent=draw(st.sampled_from([None, 2, 4, "\t"])), ensure_ascii=draw(st.booleans()))
    if agent.syntax != "json":
        text = draw(st.sampled_from(["", "// mine\n", "/* a, { */ "])) + text + draw(st.sampled_from(["", " // end"]))
    text = draw(st.sampled_from([text, text + "\n", "\n" + text, text.replace("\n", "\r\n"), ""]))
    return name, text


@settings(max_examples=_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.booleans())
def test_in_and_out_to_the_byte(tmp_path_factory: pytest.TempPathFactory, file: tuple[str, str], twice: bool):
    name, text = file
    machine = Machine(tmp_path_factory.mktemp("m"))
    path = machine.write(name, text)
    machine.install(name)
    once = path.read_bytes()
    if twice:
        machine.install(name)
        assert path.read_bytes() == once
    agent = server_agent(name)
    value = parse_settings(once.decode(), syntax=agent.syntax or "json")
    assert agent.command(value[agent.path[0]].pop("turnlog"))[:2] == [PROGRAM, "mcp"]
    before = parse_settings(text, syntax=agent.syntax or "json")
    assert value == {**before, agent.path[0]: before.get(agent.path[0], {})}
    machine.uninstall(name)
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("name", server_names())
def test_where_there_was_no_file_there_is_none_afterwards(machine: Machine, name: str):
    before = sorted(machine.folder.rglob("*"))
    machine.install(name)
    assert server_status(server_agent(name), machine.places, "user").installed
    machine.uninstall(name)
    left = [path for path in machine.folder.rglob("*") if "kept" not in path.parts]
    assert sorted(left) == before


@pytest.mark.parametrize(
    "text", ["", 'model = "x"\n', "[a]\nb = 1", '# mine\r\n[mcp_servers.other]\r\ncommand = "x"\r\n']
)
def test_codex_keeps_the_rest_of_its_configuration(machine: Machine, text: str):
    path = machine.write("codex", text)
    machine.install("codex", ["--all"])
    assert machine.entry("codex")["args"] == ["mcp", "--all"]
    with path.open("a") as file:  # what Codex writes when its user always allows a tool
        file.write('\n[mcp_servers.turnlog.tools.search_sessions]\napproval_mode = "approve"\n')
    machine.install("codex")
    entry = machine.entry("codex")
    assert entry["args"] == ["mcp", "--all"]
    assert entry["tools"]["search_sessions"]["approval_mode"] == "approve"
    machine.uninstall("codex")
    assert toml_value(path.read_text()) == toml_value(text)


def test_a_home_that_is_set_goes_along(tmp_path: Path):
    machine = Machine(tmp_path, str(tmp_path / "elsewhere"))
    where = {"TURNLOG_HOME": str(tmp_path / "elsewhere")}
    for name in server_names():
        machine.install(name)
        entry = machine.entry(name)
        assert (entry.get("env") or entry.get("environment")) == where


def test_what_somebody_added_to_our_entry_stays(machine: Machine):
    machine.install("gemini-cli", ["--allow-rewind"])
    path = machine.path("gemini-cli")
    value = json.loads(path.read_text())
    value["mcpServers"]["turnlog"] |= {"timeout": 5000, "env": {"A": "b"}}
    path.write_text(json.dumps(value))
    machine.install("gemini-cli")
    entry = machine.entry("gemini-cli")
    assert (entry["timeout"], entry["env"], entry["args"]) == (5000, {"A": "b"}, ["mcp", "--allow-rewind"])


@pytest.mark.parametrize("order", ["hooks first", "server first"])
@pytest.mark.parametrize("out", ["hooks first", "server first"])
@pytest.mark.parametrize("text", [None, '{\n  "theme": "x"\n}\n', "{}"])
def test_beside_hooks_in_the_same_file(machine: Machine, order: str, out: str, text: str | None):
    path = machine.path("gemini-cli")
    if text is not None:
        machine.write("gemini-cli", text)
    into = [machine.hook, machine.install]
    for step in into if order == "hooks first" else reversed(into):
        step("gemini-cli")
    outof = [machine.unhook, machine.uninstall]
    for step in outof if out == "hooks first" else reversed(outof):
        step("gemini-cli")
    assert (path.read_text() if path.exists() else None) == text


@pytest.mark.parametrize(
    "name, text, error",
    [
        ("claude-code", '{"mcpServers": {},}', Corrupt),
        ("claude-code", '{"mcpServers": []}', Invalid),
        ("claude-code", "[]", Invalid),
        ("gemini-cli", '{"mcpServers": {"turnlog": {"command": "npx", "args": ["turnlog"]}}}', AlreadyExists),
        ("codex", "a = \n", Corrupt),
        ("codex", 'mcp_servers = { turnlog = { command = "turnlog", args = ["mcp"] } }\n', Invalid),
    ],
)
def test_what_is_broken_or_not_ours_is_refused(machine: Machine, name: str, text: str, error: type[Exception]):
    path = machine.write(name, text)
    with pytest.raises(error, match=str(path)):
        machine.install(name)
    assert path.read_text() == text


def test_projects_and_agents_without(machine: Machine):
    machine.install("claude-code", scope="project")
    assert json.loads((machine.folder / "project/.mcp.json").read_text())["mcpServers"]["turnlog"]["type"] == "stdio"
    assert [row.scope for row in server_statuses(machine.places) if row.installed] == ["project"]
    with pytest.raises(Unsupported, match="Copilot CLI has no servers of a project"):
        machine.install("copilot-cli", scope="project")
    with pytest.raises(NotFound, match="'pi'"):
        server_agent("pi")


def test_settings_that_the_agent_reads_and_we_cannot_change_are_not_called_broken(machine: Machine):
    machine.write("codex", "mcp_servers = {}\n")
    with pytest.raises(Invalid, match="cannot be changed safely") as caught:
        machine.install("codex")
    assert caught.value.hint == "change it by hand; nothing was changed"


def test_a_status_of_what_cannot_be_read(machine: Machine):
    machine.write("opencode", "{")
    assert "it ends here" in (server_status(server_agent("opencode"), machine.places, "user").blocked_by or "")


@pytest.mark.parametrize(
    "entry",
    [{"command": "/x/turnlog", "args": 5}, {"command": "/x/turnlog", "args": "mcp"}, {"args": ["mcp"]},
     {"command": ["turnlog"]}, {"command": "/x\0y", "args": ["mcp"]}, {"command": "\ud800", "args": ["mcp"]}, 7],
)  # fmt: skip
@pytest.mark.parametrize("name", ["claude-code", "opencode", "codex"])
def test_an_entry_of_another_shape_has_a_status_and_is_not_ours(machine: Machine, name: str, entry: Any):
    agent = server_agent(name)
    if name == "codex":
        text = '[mcp_servers.turnlog]\ncommand = 5\nargs = "mcp"\n'
    else:
        text = json.dumps({agent.path[0]: {"turnlog": entry}})
    machine.write(name, text)
    status = server_status(agent, machine.places, "user")
    assert (status.installed, status.is_current) == (True, False)
    assert status.program is not None
    assert status.arguments in ((), ("mcp",))
    with pytest.raises(AlreadyExists):
        machine.install(name)


@pytest.mark.parametrize("name", server_names())
def test_a_home_that_is_no_longer_set_is_taken_out(tmp_path: Path, name: str):
    machine = Machine(tmp_path)
    machine.install(name)
    usual = machine.entry(name)
    machine.places = machine.places._replace(target_home=str(tmp_path / "elsewhere"))
    machine.install(name)
    assert machine.entry(name) != usual
    machine.places = machine.places._replace(target_home="")
    machine.install(name)
    assert machine.entry(name) == usual


def test_a_database_that_somebody_wrote_into_our_entry_stays(machine: Machine):
    machine.install("claude-code")
    path = machine.path("claude-code")
    value = json.loads(path.read_text())
    value["mcpServers"]["turnlog"]["env"] = {"TURNLOG_HOME": "postgresql://there/db"}
    path.write_text(json.dumps(value))
    machine.install("claude-code")
    assert machine.entry("claude-code")["env"] == {"TURNLOG_HOME": "postgresql://there/db"}


def test_tools_and_variables_that_somebody_chose_stay(machine: Machine):
    machine.install("copilot-cli")
    path = machine.path("copilot-cli")
    path.write_text(path.read_text().replace('"*"', '"search_sessions"'))
    machine.install("copilot-cli")
    assert machine.entry("copilot-cli")["tools"] == ["search_sessions"]
    machine.install("codex")
    path = machine.path("codex")
    path.write_text(path.read_text().replace("env_vars = [", 'env_vars = ["MINE", '))
    machine.install("codex")
    assert "MINE" in machine.entry("codex")["env_vars"]
    assert machine.entry("codex")["env_vars"].count("TURNLOG_HOME") == 1
