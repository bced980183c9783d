"""The plan of a rewind in JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from turnlog.workspace.plan import Plan


def json_plan(plan: Plan) -> dict[str, Any]:
    """Return the steps of a plan, and how many paths each action has."""
    steps = [
        {"action": step.action, "path": step.path, "root": step.root, "reason": step.reason} for step in plan.steps
    ]
    return {"note": plan.note, "counts": dict(Counter(step.action for step in plan.steps)), "steps": steps}
