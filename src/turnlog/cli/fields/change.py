"""Changed files in JSON."""

from __future__ import annotations

from typing import Any

from turnlog.cli.frame.document import shape
from turnlog.workspace.diff import Difference
from turnlog.workspace.tree import LINK, TreeNode, path_text

_NODE = {
    "kind": shape.text(),
    "mode": shape.number(null=True),
    "digest": shape.text(null=True),
    "size": shape.number(null=True),
    "target": shape.text("for a link", null=True),
}
CHANGE = {
    "path": shape.text(),
    "action": shape.text("`created`, `modified`, `deleted` or `mode`"),
    "before": shape.one(fields=_NODE, null=True),
    "after": shape.one(fields=_NODE, null=True),
    "lines": shape.text("a diff, if it is text", null=True),
}
"""A changed path, as `--json` has it."""


def json_change(item: Difference) -> dict[str, Any]:
    """Return the fields of `CHANGE`."""
    return {
        "path": item.path,
        "action": item.action,
        "before": _plain(item.before),
        "after": _plain(item.after),
        "lines": item.lines,
    }


def _plain(node: TreeNode | None) -> dict[str, Any] | None:
    if node is None:
        return None
    target = path_text(node.target) if node.kind == LINK else None
    return {
        "kind": node.kind, "mode": node.mode, "digest": node.digest or None, "size": node.size, "target": target,
    }  # fmt: skip
