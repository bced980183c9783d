"""A line in the settings of a shell, so that it completes what is typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from turnlog.cli.setup.part import SetupPart
from turnlog.machine.edit import FileEdit, edit_without_us, imprint_of, restored
from turnlog.machine.environment import config_folder, environment, user_folder
from turnlog.machine.replace import read_bytes, text_of


class CompletionPart(SetupPart):
    """The shell knows commands, options and sessions."""

    name = "completion"
    question = "Completion in your shell?"
    is_for_agents = False

    def available(self) -> list[str]:
        """See `SetupPart`."""
        shell = PurePath(environment().get("SHELL", "")).name
        return [shell] if shell in ("bash", "zsh", "fish") else []

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        return [self._edit(shell) for shell in names]

    def _edit(self, shell: str) -> FileEdit:
        path = _file(shell)
        before = read_bytes(path)
        now = text_of(path, before)
        rest = self._rest(shell, path, now)
        after = now
        if f"turnlog completion {shell}" not in now:  # else somebody did it by hand
            after = f"{now}{'' if now.endswith(chr(10)) or not now else chr(10)}{_line(shell)}"
        was = rest.encode() if before is not None else None
        return FileEdit(shell, path, before, after.encode(), imprint_of(self.imprints, path, was, after))

    def plan_undo(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        edits: list[FileEdit] = []
        for shell in names:
            path = _file(shell)
            before = read_bytes(path)
            if before is not None and self.imprints.find(path) is not None:
                rest = self._rest(shell, path, text_of(path, before))
                edits.append(edit_without_us(shell, self.imprints, path, before, rest, is_empty=not rest.strip()))
        return edits

    def _rest(self, shell: str, path: str, now: str) -> str:
        return restored(self.imprints, path, now, lambda _: now.replace(_line(shell), ""), str.strip)

    def notes(self, names: Sequence[str]) -> list[str]:
        """See `SetupPart`."""
        return [f"{shell}: from the next shell on" for shell in names]


def _file(shell: str) -> str:
    if shell == "fish":
        return f"{config_folder()}/fish/completions/turnlog.fish"
    base = environment().get("ZDOTDIR", "") if shell == "zsh" else ""
    return f"{base or user_folder()}/.{shell}rc"


def _line(shell: str) -> str:
    """Return the line for the shell's settings; it does nothing if turnlog is not installed."""
    if shell == "fish":
        return "command -q turnlog; and turnlog completion fish | source\n"
    return f'command -v turnlog >/dev/null && eval "$(turnlog completion {shell})"\n'
