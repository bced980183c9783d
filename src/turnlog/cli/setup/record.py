"""What `turnlog setup` did on this machine, so that `--undo` takes back that and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from turnlog.machine.replace import read_bytes, replace_file
from turnlog.reader.agents.hookedhome import machine_folder_of


class SetupRecord:
    """The file that says for which names each part was set up."""

    def __init__(self, location: str | None) -> None:
        self._path = f"{machine_folder_of(location)}/settings/setup.json"

    def read(self) -> dict[str, list[str]]:
        """Return what was done and not taken back: names by part."""
        try:
            data = json.loads(read_bytes(self._path) or b"{}")
            return {str(part): [str(name) for name in names] for part, names in data.items()}
        except (ValueError, AttributeError, TypeError):
            return {}

    def add(self, added: Mapping[str, Sequence[str]]) -> None:
        """Record what is going to be set up. Undoing a part that was not made after all changes nothing."""
        recorded = self.read()
        self._write({part: sorted({*recorded.get(part, ()), *added.get(part, ())}) for part in {**recorded, **added}})

    def remove(self, removed: Mapping[str, Sequence[str]]) -> None:
        """Record what was taken back. What another version recorded, and this one does not know, stays."""
        left = {
            part: [name for name in names if name not in removed.get(part, ())] for part, names in self.read().items()
        }
        self._write({part: names for part, names in left.items() if names})

    def _write(self, recorded: Mapping[str, Sequence[str]]) -> None:
        data = json.dumps(recorded, sort_keys=True).encode() + b"\n"
        replace_file(self._path, read_bytes(self._path), data)
