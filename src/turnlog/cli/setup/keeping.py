"""Sessions that their agents would delete: kept, and the agents told to delete none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turnlog.cli.setup.part import SetupPart
from turnlog.exchange.keeping.retention import Limit, limits, unlimited_retention
from turnlog.formats import Retention, format_of
from turnlog.machine.edit import FileEdit, edit_without_us, imprint_of, restored
from turnlog.machine.environment import default_home
from turnlog.machine.keepstate import KeepState, keep_going
from turnlog.machine.replace import naming_file, read_bytes, text_of
from turnlog.machine.settings import MISSING, parse_settings, value_at, with_value, without


class KeepPart(SetupPart):
    """Nothing is lost when an agent deletes its sessions."""

    name = "keep"
    question = "Keep sessions that their agent would delete, and configure it to delete none?"

    @property
    def _state(self) -> KeepState:
        return KeepState(self.location or default_home())

    def available(self) -> list[str]:
        """See `SetupPart`."""
        return [limit.agent for limit in limits()] if self._state.is_possible else []

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        return [self._edit(limit, retention) for limit, retention in _limits_of(names) if not limit.is_long]

    def _edit(self, limit: Limit, retention: Retention) -> FileEdit:
        file, edit = unlimited_retention(retention)
        before = read_bytes(file.path)
        with naming_file(file.path, limit.agent):
            now = text_of(file.path, before)
            after = edit(now)
        imprint = imprint_of(self.imprints, file.path, before, after)
        return FileEdit(limit.agent, file.path, before, after.encode(), imprint)

    def plan_undo(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        edits: list[FileEdit] = []
        for limit, retention in _limits_of(names):
            before = read_bytes(limit.settings)
            if before is not None and self.imprints.find(limit.settings) is not None:
                edits.append(self._restored(limit, retention, before))
        return edits

    def _restored(self, limit: Limit, retention: Retention, before: bytes) -> FileEdit:
        now = text_of(limit.settings, before)

        def read(text: str) -> Any:
            return parse_settings(text, syntax=retention.syntax)

        def rest(then: Any) -> str:
            return _as_it_was(now, then, retention)

        after = restored(self.imprints, limit.settings, now, rest, read)
        return edit_without_us(limit.agent, self.imprints, limit.settings, before, after, is_empty=read(after) == {})

    def not_set_up(self, names: Sequence[str]) -> list[str]:
        """See `SetupPart`."""
        agents = self._state.agents()
        changed = super().not_set_up(names)
        return [name for name in names if name not in agents or name in changed]

    def notes(self, names: Sequence[str]) -> list[str]:
        """See `SetupPart`."""
        return [f"{name}: copies of its sessions are kept from now on" for name in names]

    def apply(self, names: Sequence[str]) -> None:
        """See `SetupPart`."""
        super().apply(names)
        self._state.choose(sorted({*self._state.agents(), *names}))
        keep_going(self._state.location)

    def undo(self, names: Sequence[str]) -> None:
        """See `SetupPart`. What is kept stays."""
        super().undo(names)
        self._state.choose([name for name in self._state.agents() if name not in names])


def _limits_of(names: Sequence[str]) -> Iterator[tuple[Limit, Retention]]:
    for limit in limits():
        retention = format_of(limit.agent).retention
        if limit.agent in names and retention is not None:
            yield limit, retention


def _as_it_was(now: str, then: Any, retention: Retention) -> str:
    """The text with what was set there before; what somebody else set since stays."""
    text = now
    for setting in retention.forever:
        path = setting.path
        if value_at(text, path, syntax=retention.syntax) != setting.value:
            continue
        before: Any = then
        for key in path:
            before = before.get(key, MISSING) if isinstance(before, dict) else MISSING  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if before is MISSING:
            text = without(text, path, syntax=retention.syntax)
        else:
            text = with_value(text, path, before, syntax=retention.syntax)
    return text
