"""The files of agents on this machine, and the home that their hooks write to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnlog.errors import Unsupported
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from turnlog.hooks import HookedAgent
    from turnlog.machine.imprint import Imprints


class HookPlaces(NamedTuple):
    """What a plan has to know of this machine."""

    user_folder: str
    environ: Mapping[str, str]
    project: str
    """The folder of the project that is worked in."""
    imprints: Imprints
    """The copies of the files that we changed."""
    target_home: str = ""
    """The home that hooks write to; empty for the default one."""

    def file(self, agent: HookedAgent, scope: str) -> str:
        """The path of the file with an agent's hooks, for the user or for the project."""
        if scope == "user":
            return os.path.join(self.folder(agent), agent.file.name)
        if agent.file.project is None:
            raise Unsupported(f"{agent.title} has no hooks of a project", hint="install them without --project")
        return os.path.join(self.project, agent.file.project)

    def folder(self, agent: HookedAgent) -> str:
        """The folder of an agent."""
        return agent.folder.path(self.user_folder, self.environ)

    def has(self, agent: HookedAgent) -> bool:
        """Whether an agent is installed."""
        return os.path.isdir(self.folder(agent))
