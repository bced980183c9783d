"""Settings of agents in JSON: which files were changed, and how our hooks in them stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.cli.frame.document import shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnlog.cli.frame.document.shape import Field
    from turnlog.hooks.status import HookStatus
    from turnlog.hooks.trace import AgentTrace
    from turnlog.machine.edit import FileEdit

EDITED_FILES = shape.each(
    "what was changed", {"agent": shape.text(), "path": shape.text(), "change": shape.text("`written` or `removed`")}
)


def part_fields(status: Mapping[str, Field]) -> dict[str, Field]:
    """Return the fields of a command that installs a part; `status` has those of each agent besides the file."""
    agent = {
        "agent": shape.text(),
        "is_here": shape.flag("whether the agent is installed"),
        "installed": shape.flag(),
        "path": shape.text("the file"),
        "scope": shape.text("`user` or `project`"),
    }
    return {
        "action": shape.text("`install`, `uninstall` or `status`"),
        "dry_run": shape.DRY_RUN,
        "agents": shape.items("how each stands", {**agent, **status}),
        "files": EDITED_FILES,
    }


def json_hook_status(row: HookStatus, traces: Mapping[str, AgentTrace]) -> dict[str, Any]:
    """Return the hooks of one agent, with what they told last."""
    from turnlog.cli.frame.document.encoding import utc
    from turnlog.hooks import hooked_agent
    from turnlog.hooks.status import missing_events

    trace = traces.get(row.agent)
    return {
        **row._asdict(),
        "last_event": None if trace is None else trace.last_event,
        "last_at": None if trace is None else utc(round(trace.last_at_s * 1_000_000) // 1000),
        "last_error": None if trace is None else trace.last_error,
        "tells_less": None if trace is None else missing_events(hooked_agent(row.agent), trace.events),
    }


def json_edit(edit: FileEdit) -> dict[str, str]:
    """Return which file was changed, and how."""
    return {"agent": edit.agent, "path": edit.path, "change": edit.change}
