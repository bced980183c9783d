"""The agents that something is to be done for: named, all that are here, or those for which somebody says yes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnlog.cli.frame.question import ask, can_ask
from turnlog.errors import Invalid, NotFound
from turnlog.view.visible import one_line


class AgentChoice(NamedTuple):
    """What is to be done, and for which agents it can be."""

    action: str
    """`install` or `uninstall`."""
    thing: str
    """What is installed, such as "hooks"."""
    participle: str
    """How an agent that has it is described, such as "hooked"."""
    supported: list[str]
    candidates: list[str]
    """Those that are here; to take it out, those that have it."""

    def chosen(
        self, named: tuple[str, ...], question: Callable[[str], str], *, everyone: bool, as_json: bool
    ) -> list[str]:
        """Return the agents that are meant: those that were named, all, or those for which somebody says yes."""
        candidates = list(dict.fromkeys(self.candidates))
        if named and everyone:
            raise Invalid("either agents or --all", hint=f"agents: {', '.join(self.supported)}")
        if named:
            return list(dict.fromkeys(named))
        if everyone:
            if not candidates and self.action == "install":
                raise NotFound(
                    f"no agent is here that could be {self.participle}", hint=f"known: {', '.join(self.supported)}"
                )
            return candidates
        if not candidates:
            what = "no agent is here" if self.action == "install" else f"no agent is {self.participle}"
            raise NotFound(what, hint=f"name one of {', '.join(self.supported)}")
        if not can_ask(as_json=as_json):
            hint = f"name some of {', '.join(candidates)}; or --all"
            raise Invalid(f"which agents to {self.action} {self.thing} for was not said", hint=hint)
        return [name for name in candidates if ask(one_line(question(name)))]
