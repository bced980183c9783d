"""The net change of each file over several turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from turnlog.session.comparison import ChangedFile

if TYPE_CHECKING:
    from turnlog.workspace.diff import Difference


def files_of(turns: Iterable[list[Difference]]) -> list[ChangedFile]:
    """The net change of each path over all turns. A path that is again as it was before is left out."""
    differences: dict[str, list[Difference]] = {}
    for changed in turns:
        for item in changed:
            differences.setdefault(item.path, []).append(item)
    return [file for path in sorted(differences) if (file := _file(path, differences[path])) is not None]


def _file(path: str, items: list[Difference]) -> ChangedFile | None:
    was, now = items[0].before, items[-1].after
    if was == now:
        return None
    action = "created" if was is None else "deleted" if now is None else items[-1].action
    if was is not None and now is not None and {item.action for item in items} != {"mode"}:
        action = "modified"
    counted = [item.counts for item in items if not item.is_private]
    return ChangedFile(path, action, sum(plus for plus, _ in counted), sum(minus for _, minus in counted))
