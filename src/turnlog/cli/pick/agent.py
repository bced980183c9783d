"""The agents that something is to be done for: named, all that are here, or those for which somebody says yes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnlog.cli.draw.question import ask, can_ask
from turnlog.cli.draw.text import one_line
from turnlog.errors import Invalid, NotFound


class AgentChoice(NamedTuple):
    """What is to be done, and for which agents it can be."""

    action: str
    """`install` or `uninstall`."""
    what: str
    """What is installed."""
    done: str
    """How an agent that has it is described, such as "hooked"."""
    known: list[str]
    there: list[str]
    """Those that are here; to take it out, those that have it."""

    def chosen(
        self, named: tuple[str, ...], question: Callable[[str], str], *, everyone: bool, as_json: bool
    ) -> list[str]:
        """The ones that are meant."""
        there = list(dict.fromkeys(self.there))
        if named and everyone:
            raise Invalid("either agents or --all", hint=f"agents: {', '.join(self.known)}")
        if named:
            return list(dict.fromkeys(named))
        if everyone:
            if not there and self.action == "install":
                raise NotFound(f"no agent is here that could be {self.done}", hint=f"known: {', '.join(self.known)}")
            return there
        if not there:
            what = "no agent is here" if self.action == "install" else f"no agent is {self.done}"
            raise NotFound(what, hint=f"name one of {', '.join(self.known)}")
        if not can_ask(as_json=as_json):
            hint = f"name some of {', '.join(there)}; or --all"
            raise Invalid(f"which agents to {self.action} {self.what} for was not said", hint=hint)
        return [name for name in there if ask(one_line(question(name)))]
