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
    from turnlog.machine.settings import Dialect

Meaning = Literal["begin", "tool", "end", "leave"]
"""A turn begins, a tool ended, a turn ends, the agent ends."""
TIMEOUT_S = 7
"""After which an agent gives a hook up: a little above what a hook takes at the most."""

# Plain classes: a hook is a process of its own, and to make a named tuple takes longer than all that it needs of these.


class HookEvent:
    """Something that an agent tells of, by its own name for it."""

    def __init__(self, name: str, means: Meaning, matcher: str = "") -> None:
        self.name = name
        self.means: Meaning = means
        self.matcher = matcher
        """Of which tools, as a regular expression; of all without one."""


class AgentFolder:
    """Where an agent keeps its settings: in the folder that a variable names, else in that one of the home folder."""

    def __init__(self, default: str, variable: str = "", inside: str = "") -> None:
        self._default = default
        self.variable = variable
        self._inside = inside

    def path(self, home: str, environ: Mapping[str, str]) -> str:
        """The folder, there or not."""
        return os.path.join(environ.get(self.variable) or os.path.join(home, self._default), self._inside).rstrip("/")

    @property
    def usual(self) -> str:
        """As people write it."""
        return os.path.join("~", self._default, self._inside).rstrip("/")


class HookFile:
    """The file that says which hooks run: the user's settings with ours in them, or a file of our own."""

    def __init__(
        self,
        name: str,
        project: str | None,
        *,
        dialect: Dialect = "json",
        timeout_unit: Literal["s", "ms"] = "s",
        hook_name: str = "",
        top_keys: frozenset[str] = frozenset(),
        kinds: Mapping[str, type] | None = None,
        takes_bom: bool = False,
        is_strict: bool = False,
        keeps_places: bool = False,
        render: Callable[[str, str], str] | None = None,
    ) -> None:
        self.name = name
        """In the agent's folder."""
        self.project = project
        """In the folder of a project; None where the agent has no such file."""
        self.dialect: Dialect = dialect
        self.timeout_unit = timeout_unit
        self.hook_name = hook_name
        """What a hook is called, where the agent lists them by name."""
        self.top_keys = top_keys
        """The only ones that the agent takes; any, if there are none here."""
        self.kinds = kinds or {}
        """What stands under other keys, with dots between names: where it is anything else, the agent reads nothing."""
        self.takes_bom = takes_bom
        """Whether the agent reads a file that begins with a byte order mark."""
        self.is_strict = is_strict
        """Whether one hook in it that the agent does not understand keeps all of them from running."""
        self.keeps_places = keeps_places
        """Whether the agent knows a hook by its place, so that others must not move when ours go."""
        self.render = render
        """The text of a file of our own, for the program that it calls and the home that it fills, where that is not
        the usual one; None for settings of the user."""


class HookSwitch:
    """A setting of an agent that keeps hooks from running: in any of these files, the last one that says it counts."""

    def __init__(self, key: str, off: Any, *files: str) -> None:
        self.key = key
        """Names with dots between them."""
        self.off = off
        """The value that switches them off; for a list, what is in it then."""
        self.files = files
        """From the root, `~/` in the agent's folder, or `./` in the project's."""


class HookedAgent:
    """An agent that tells what it does by hooks."""

    def __init__(
        self,
        name: str,
        title: str,
        tried: str,
        *,
        folder: AgentFolder,
        file: HookFile,
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
        """As its sessions are called."""
        self.title = title
        self.tried = tried
        """The version that it was tried with."""
        self.folder = folder
        self.file = file
        self.events = events
        self.switches = switches
        self.trusts = trusts
        """Whether it runs only what its user has said that he trusts."""
        self.after = after
        """What its user has to do then."""
        self.project_needs = project_needs
        """What has to be so for the hooks of a project to run."""
        self.folder_variable = folder_variable
        """What tells a hook the folder that a session began in, wherever the agent is by now."""
        self.shell_variable = shell_variable
        """What says that a command is run by the agent, and not by a person."""
        self.session_variable = session_variable
        """What tells such a command which session of the agent runs it."""
        self.takes_context = takes_context
        """Whether what a hook prints as a turn begins is put before the model."""
        self.has_turns = has_turns
        """Whether its own file tells where turns begin and end, which count here, too."""
        self.says_interrupted = says_interrupted
        """Whether the end of a session's file says that a turn was interrupted; None where hooks tell it."""

    def event(self, name: str) -> HookEvent | None:
        """The event of that name, if it is one that we ask for."""
        return next((event for event in self.events if event.name == name), None)


def names() -> list[str]:
    """Every agent that can be hooked."""
    # Not `pkgutil`: it takes longer than all else that a hook needs of this.
    files = os.listdir(os.path.join(os.path.dirname(__file__), "agents"))
    return sorted(name[:-3].replace("_", "-") for name in files if name.endswith(".py") and not name.startswith("_"))


@cache
def agent(name: str) -> HookedAgent:
    """The agent of that name."""
    module = name.replace("-", "_")
    if not module.isidentifier() or "_" in name or name not in names():
        raise NotFound(f"no hooks are known of an agent {name!r:.80}", hint=f"one of {', '.join(names())}")
    return import_module(f"turnlog.hooks.agents.{module}").AGENT


def whose_shell(environ: Mapping[str, str]) -> HookedAgent | None:
    """The agent that runs this command itself; None where a person does."""
    agents = (agent(name) for name in names())
    return next((one for one in agents if one.shell_variable and environ.get(one.shell_variable)), None)


def asked_by(environ: Mapping[str, str]) -> str | None:
    """The session of an agent that runs this command itself, or the agent where it does not tell; None for a person."""
    one = whose_shell(environ)
    if one is None:
        return None
    native = environ.get(one.session_variable, "") if one.session_variable else ""
    return imported_id(one.name, native) if native.isprintable() and 0 < len(native) < 200 else one.name


def unhooked(home: str, environ: Mapping[str, str]) -> list[str]:
    """The agents that are here and call nobody, as people call them. Quick: it only looks for our words."""
    titles: list[str] = []
    for one in map(agent, names()):
        folder = one.folder.path(home, environ)
        if not os.path.isdir(folder):
            continue
        try:
            with open(os.path.join(folder, one.file.name), "rb") as file:
                text = file.read()
        except OSError:
            text = b""
        is_hooked = bool(text) if one.file.render is not None else f"hook {one.name} ".encode() in text
        titles += [] if is_hooked else [one.title]
    return titles
