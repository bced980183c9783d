"""The hooks of other agents: what each of them calls while it works, and how that gets into its settings and out again.

One file in `agents/` is one agent, and its name is its registration: a dash on the command line is an underscore there.
Each has one value, `AGENT`. An agent that is called by its plugin or extension passes what it knows in the words of
Claude Code: `session_id`, `cwd`, `prompt_id`, `tool_name`, `tool_input`, `transcript_path`, and its own `pid`; and as a
turn ends, whether it was `interrupted`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from turnlog.errors import NotFound
from turnlog.log.ids import imported_id

if TYPE_CHECKING:
    from turnlog.machine.settings.jsontext import JsonSyntax

Meaning = Literal["begin", "tool", "end", "leave"]
"""A turn begins, a tool ended, a turn ends, the agent ends."""
TIMEOUT_S = 7
"""The time after which an agent gives a hook up: a little longer than a hook takes at most."""

# Plain classes: a hook is a process of its own, and defining a named tuple takes longer than using all of these.


class HookEvent:
    """An event that an agent reports, under the agent's own name for it."""

    def __init__(self, name: str, means: Meaning, matcher: str = "") -> None:
        self.name = name
        self.means: Meaning = means
        self.matcher = matcher
        """A regular expression for the names of tools; empty for all."""


class AgentFolder:
    """The folder with the settings of an agent: named by a variable, or a usual one in the user's home folder."""

    def __init__(self, default: str, variable: str = "", inside: str = "") -> None:
        self._default = default
        self.variable = variable
        self._inside = inside

    def path(self, home: str, environ: Mapping[str, str]) -> str:
        """The folder, whether it exists or not."""
        return os.path.join(environ.get(self.variable) or os.path.join(home, self._default), self._inside).rstrip("/")

    @property
    def usual(self) -> str:
        """The usual folder as people write it."""
        return os.path.join("~", self._default, self._inside).rstrip("/")


class HookFile:
    """The settings file of an agent, in which our hooks stand among what its user wrote."""

    def __init__(
        self,
        name: str,
        project: str | None,
        *,
        syntax: JsonSyntax = "json",
        timeout_unit: Literal["s", "ms"] = "s",
        hook_name: str = "",
        top_keys: frozenset[str] = frozenset(),
        kinds: Mapping[str, type] | None = None,
        takes_bom: bool = False,
        is_strict: bool = False,
        keeps_places: bool = False,
    ) -> None:
        self.name = name
        """The path of the file in the agent's folder."""
        self.project = project
        """The path of the file in the folder of a project; None if the agent has no such file."""
        self.syntax: JsonSyntax = syntax
        self.timeout_unit = timeout_unit
        self.hook_name = hook_name
        """The name of our hooks, if the agent lists hooks by name."""
        self.top_keys = top_keys
        """The only keys that the agent accepts at the top; empty if it accepts any."""
        self.kinds = kinds or {}
        """The type of each of these keys, whose names have dots between them. If one has another type, the agent
        ignores the whole file."""
        self.takes_bom = takes_bom
        """Whether the agent reads a file that begins with a byte order mark."""
        self.is_strict = is_strict
        """Whether the agent runs no hook at all if it does not understand one of them."""
        self.keeps_places = keeps_places
        """Whether the agent knows a hook by its place, so that others must not move when ours go."""

    def seems_hooked(self, text: bytes, agent: str) -> bool:
        """Whether the file has hooks of ours, judged without parsing it."""
        return f"hook {agent} ".encode() in text


class OwnHookFile:
    """A file of our own, in a folder where the agent looks for such files."""

    def __init__(self, name: str, project: str | None, render: Callable[[str, str], str]) -> None:
        self.name = name
        """The path of the file in the agent's folder."""
        self.project = project
        """The path of the file in the folder of a project; None if the agent has no such file."""
        self.render = render
        """Returns the text of the file for a program to call and a home to write to, empty for the default one."""

    def seems_hooked(self, text: bytes, agent: str) -> bool:
        """Whether the file exists: nobody else writes a file of that name for any agent."""
        return bool(text)


class HookSwitch:
    """A setting that keeps hooks from running. It may be in several files; the last one that has it counts."""

    def __init__(self, key: str, off: Any, *files: str) -> None:
        self.key = key
        """The path of the setting, with dots between the names."""
        self.off = off
        """The value that switches hooks off; for a list, the item that does."""
        self.files = files
        """Absolute paths, or paths that begin with `~/` for the agent's folder or `./` for the project's."""


class HookedAgent:
    """An agent that reports what it does by hooks."""

    def __init__(
        self,
        name: str,
        title: str,
        tried: str,
        *,
        folder: AgentFolder,
        file: HookFile | OwnHookFile,
        events: tuple[HookEvent, ...],
        switches: tuple[HookSwitch, ...] = (),
        trusts: bool = False,
        after: str = "start it anew",
        project_needs: str = "",
        folder_variable: str = "",
        shell_variable: str = "",
        session_variable: str = "",
        takes_context: bool = False,
        has_turns: bool = False,
        says_interrupted: Callable[[bytes, str], bool] | None = None,
    ) -> None:
        self.name = name
        """The name of its format."""
        self.title = title
        self.tried = tried
        """The versions that the hooks were tried with."""
        self.folder = folder
        self.file = file
        self.events = events
        self.switches = switches
        self.trusts = trusts
        """Whether the agent runs only hooks that its user trusts, as Codex does."""
        self.after = after
        """What the user has to do after the installation."""
        self.project_needs = project_needs
        """The condition for the hooks of a project to run; empty if there is none."""
        self.folder_variable = folder_variable
        """The variable with the folder that a session began in, whatever the agent's current folder is."""
        self.shell_variable = shell_variable
        """The variable that is set in commands that the agent runs."""
        self.session_variable = session_variable
        """The variable with the id of the session in commands that the agent runs."""
        self.takes_context = takes_context
        """Whether the model sees what a hook prints when a turn begins."""
        self.has_turns = has_turns
        """Whether the session's own file marks where turns begin and end; these marks count, too."""
        self.says_interrupted = says_interrupted
        """Returns whether the end of a session's file says that a turn was interrupted; None if hooks report it."""

    @property
    def settings_file(self) -> HookFile:
        """The file, for an agent whose hooks stand in its settings."""
        assert isinstance(self.file, HookFile)
        return self.file

    def event(self, name: str) -> HookEvent | None:
        """The event of that name; None if we have no hook for it."""
        return next((event for event in self.events if event.name == name), None)


def names() -> list[str]:
    """The names of all agents that can be hooked."""
    # Not `pkgutil`: it takes longer than all else that a hook needs of this.
    files = os.listdir(os.path.join(os.path.dirname(__file__), "agents"))
    return sorted(name[:-3].replace("_", "-") for name in files if name.endswith(".py") and not name.startswith("_"))


@cache
def hooked_agent(name: str) -> HookedAgent:
    """The agent of that name."""
    module = name.replace("-", "_")
    if not module.isidentifier() or "_" in name or name not in names():
        raise NotFound(f"no hooks are known of an agent {name!r:.80}", hint=f"one of {', '.join(names())}")
    return import_module(f"turnlog.hooks.agents.{module}").AGENT


def agent_running_command(environ: Mapping[str, str]) -> HookedAgent | None:
    """The agent that runs this command; None if a person does."""
    for name in names():
        agent = hooked_agent(name)
        if agent.shell_variable and environ.get(agent.shell_variable):
            return agent
    return None


def caller_of(environ: Mapping[str, str]) -> str | None:
    """The session that runs this command, or its agent if the session is unknown; None if a person runs it."""
    agent = agent_running_command(environ)
    if agent is None:
        return None
    native = environ.get(agent.session_variable, "") if agent.session_variable else ""
    return imported_id(agent.name, native) if native.isprintable() and 0 < len(native) < 200 else agent.name


def agents_without_hooks(home: str, environ: Mapping[str, str]) -> list[str]:
    """The titles of the agents that are installed and seem to have no hooks of ours. Quick: it parses no file."""
    titles: list[str] = []
    for agent in map(hooked_agent, names()):
        folder = agent.folder.path(home, environ)
        if not os.path.isdir(folder):
            continue
        path, text = os.path.join(folder, agent.file.name), b""
        try:
            if os.path.isfile(path):  # to open a named pipe would wait for its writer
                with open(path, "rb") as file:
                    text = file.read()
        except OSError:
            pass  # it cannot be read, so nothing is known of hooks in it
        if not agent.file.seems_hooked(text, agent.name):
            titles.append(agent.title)
    return titles
