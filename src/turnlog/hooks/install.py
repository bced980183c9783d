"""Installing hooks and removing them: planned for all agents before any file is changed."""

from __future__ import annotations

from turnlog.hooks import HookedAgent, OwnHookFile
from turnlog.hooks.filehooks import FileHooks
from turnlog.hooks.ownfile import OwnFileHooks
from turnlog.hooks.places import HookPlaces
from turnlog.hooks.settingshooks import SettingsHooks
from turnlog.machine.edit import FileEdit


def plan_install(agent: HookedAgent, places: HookPlaces, scope: str, program: str, *, trust: bool) -> list[FileEdit]:
    """The edits after which an agent calls the program; with `trust`, also those after which it trusts our hooks."""
    return file_hooks(agent, places, scope).plan_install(program, trust=trust)


def plan_uninstall(agent: HookedAgent, places: HookPlaces, scope: str) -> list[FileEdit]:
    """The edits after which an agent's files are as they would be without us."""
    return file_hooks(agent, places, scope).plan_uninstall()


def file_hooks(agent: HookedAgent, places: HookPlaces, scope: str) -> FileHooks:
    """The hooks of an agent in its file for the user or for the project."""
    if isinstance(agent.file, OwnHookFile):
        return OwnFileHooks(agent, agent.file, places, scope)
    return SettingsHooks(agent, places, scope)
