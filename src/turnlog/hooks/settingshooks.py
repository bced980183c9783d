"""Hooks in a settings file of the user, and the trust of Codex in them."""

from __future__ import annotations

from typing import Any

from turnlog.errors import TurnlogError
from turnlog.hooks import HookedAgent
from turnlog.hooks.entries import are_current, check_settings, hook_entries, with_hooks, without_hooks
from turnlog.hooks.filehooks import InstalledHooks
from turnlog.hooks.places import HookPlaces
from turnlog.hooks.trust import config_path, is_trusted, trust_hashes, with_trust, without_trust
from turnlog.machine.edit import FileEdit, edit_without_us, imprint_of, restored
from turnlog.machine.replace import naming_file, read_bytes, text_of
from turnlog.machine.settings import parse_settings
from turnlog.machine.settings.toml import toml_value


class SettingsHooks:
    """Our hooks among the settings of an agent: see `FileHooks`."""

    def __init__(self, agent: HookedAgent, places: HookPlaces, scope: str) -> None:
        self.path = places.file(agent, scope)
        self._agent = agent
        self._imprints = places.imprints
        self._target_home = places.target_home
        self._config_path = config_path(places.folder(agent))

    def plan_install(self, program: str, *, trust: bool) -> list[FileEdit]:
        """See `FileHooks`."""
        before = read_bytes(self.path)
        with naming_file(self.path, self._agent.title):
            now = text_of(self.path, before)
            after = with_hooks(now, self._agent, program, self._target_home)
            original = self._restored(now)
        edits = [self._edit(self.path, before, original, after)]
        return [*edits, self._plan_trust(after)] if trust and self._agent.trusts else edits

    def plan_uninstall(self) -> list[FileEdit]:
        """See `FileHooks`."""
        before = read_bytes(self.path)
        if before is None:
            return []
        with naming_file(self.path, self._agent.title):
            now = text_of(self.path, before)
            settings, original = self._parse(now), self._restored(now)
            is_empty = self._parse(original) == {}
        edit = edit_without_us(self._agent.name, self._imprints, self.path, before, original, is_empty=is_empty)
        return [edit, *self._plan_distrust(settings)]

    def installed(self) -> InstalledHooks:
        """See `FileHooks`."""
        text = text_of(self.path, read_bytes(self.path))
        settings = self._parse(text)
        refusal = self._refusal(text)
        ours = hook_entries(settings, self._agent)
        if not ours:
            return InstalledHooks(refusal=refusal)
        trusted = None
        if self._agent.trusts:
            config = text_of(self._config_path, read_bytes(self._config_path))
            trusted = is_trusted(config, trust_hashes(settings, self._agent, self.path))
        return InstalledHooks(ours[0].program, ours[0].home, are_current(ours, self._agent), trusted, refusal)

    def _refusal(self, text: str) -> str | None:
        try:
            check_settings(text, self._agent)
        except TurnlogError as error:
            return f"{self.path}: {error.message}"
        return None

    def _plan_trust(self, settings_after: str) -> FileEdit:
        path, before = self._config_path, read_bytes(self._config_path)
        hashes = trust_hashes(self._parse(settings_after), self._agent, self.path)
        with naming_file(path, self._agent.title):
            now = text_of(path, before)
            after = with_trust(now, hashes)
            original = restored(self._imprints, path, now, lambda _: without_trust(now, hashes), toml_value)
        return self._edit(path, before, original, after)

    def _plan_distrust(self, settings: Any) -> list[FileEdit]:
        hashes = trust_hashes(settings, self._agent, self.path) if self._agent.trusts else {}
        path = self._config_path
        before = read_bytes(path) if hashes else None
        if before is None:
            return []
        with naming_file(path, self._agent.title):
            now = text_of(path, before)
            original = restored(self._imprints, path, now, lambda _: without_trust(now, hashes), toml_value)
        is_empty = not toml_value(original)
        return [edit_without_us(self._agent.name, self._imprints, path, before, original, is_empty=is_empty)]

    def _parse(self, text: str) -> Any:
        return parse_settings(text, syntax=self._agent.settings_file.syntax)

    def _restored(self, now: str) -> str:
        """The settings as they would be without us."""
        return restored(
            self._imprints,
            self.path,
            now,
            lambda settings_before: without_hooks(now, self._agent, settings_before),
            self._parse,
        )

    def _edit(self, path: str, before: bytes | None, original: str, after: str) -> FileEdit:
        kept = original.encode() if before is not None else None
        return FileEdit(self._agent.name, path, before, after.encode(), imprint_of(self._imprints, path, kept, after))
