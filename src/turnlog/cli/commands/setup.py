"""`turnlog setup`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turnlog.cli.draw.fileedit import difference
from turnlog.cli.fields.agentfile import json_edit
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import DRY_RUN_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import note, tell
from turnlog.cli.frame.question import ask, ask_words, confirm, refuse_without_terminal
from turnlog.cli.frame.terminal import coloured
from turnlog.cli.setup.agentpart import HooksPart, ServerPart
from turnlog.cli.setup.completion import CompletionPart
from turnlog.cli.setup.keeping import KeepPart
from turnlog.cli.setup.part import SetupPart
from turnlog.cli.setup.record import SetupRecord
from turnlog.errors import Invalid, NotFound
from turnlog.machine.edit import FileEdit
from turnlog.reader.naming.here import tilde
from turnlog.view.number import count
from turnlog.view.visible import one_line

PARTS: tuple[type[SetupPart], ...] = (HooksPart, ServerPart, KeepPart, CompletionPart)
GROUP = "Safety net", 1
CHANGES = shape.OTHERS
FIELDS = {
    "action": shape.text("`setup` or `undo`"),
    "dry_run": DRY_RUN,
    "parts": shape.one("for each part, the agents or the shell it was set up for"),
    "files": shape.items(
        "what was changed, or would be",
        {
            "part": shape.text("`hooks`, `mcp`, `keep` or `completion`"),
            "agent": shape.text("the agent or the shell"),
            "path": shape.text(),
            "change": shape.text("`written` or `removed`"),
        },
    ),
}


class ChosenPart(NamedTuple):
    """A part of the setup, and the agents or the shell that it is for; none if it is not wanted."""

    part: SetupPart
    names: list[str]


class PlannedEdit(NamedTuple):
    """A change of a file, and the part that makes it."""

    part: SetupPart
    edit: FileEdit


@declare(
    Argument("agents", "[AGENT]...", kind="agent"),
    Option("--hooks/--no-hooks", "Agents report every turn."),
    Option("--mcp/--no-mcp", "Agents can search and read earlier sessions."),
    Option("--keep/--no-keep", "Keep sessions that agents would delete."),
    Option("--completion/--no-completion", "Your shell completes what you type."),
    Option("--undo", "Take back what setup did, and nothing else."),
    Option("--yes -y", "Do not ask: set up every part that is not excluded, for all installed agents."),
    DRY_RUN_OPTION,
    Option("--anyway", "Also from a temporary environment."),
)
def command(
    agents: tuple[str, ...],
    undo: bool,
    yes: bool,
    dry_run: bool,
    anyway: bool,
    as_json: bool,
    **wanted: bool | None,
) -> None:
    """Set up all installed agents. Its parts are hooks, the MCP server, keeping sessions, and completion.

    Asks which agents and which of these you want, shows every change to every file, then asks once to make them.
    `--undo` takes back what it did and keeps changes that were made since. The parts are `turnlog hooks`, `turnlog
    mcp`, `turnlog keep` and `turnlog completion`.

    \b
    turnlog setup                            asks
    turnlog setup --dry-run                  what it would change
    turnlog setup codex --no-keep --yes      without a question
    turnlog setup --undo                     restore the settings
    """
    location = home_location()
    parts = [part(location, anyway=anyway) for part in PARTS]
    record = SetupRecord(location)
    if undo:
        if agents or any(value is not None for value in wanted.values()):
            raise Invalid("--undo takes back all that setup did", hint="`turnlog hooks uninstall AGENT` is about one")
        choice = _recorded(reversed(parts), record)
    else:
        choice = _chosen(parts, agents, wanted, is_decided=yes or dry_run, as_json=as_json)
    edits = [edit for chosen in choice for edit in _planned(chosen, is_undo=undo)]
    if not as_json:
        _print_edits(choice, edits, is_undo=undo)
    is_due = bool(edits) or any(names for _, names in choice)
    if is_due and not dry_run:
        _refuse_unasked(is_undo=undo, yes=yes, as_json=as_json)
        if undo:
            refuse_agent("setup --undo")
        if not yes:
            confirm(_question(edits), nothing="nothing was changed")
        _carry_out(choice, record, is_undo=undo)
    if as_json:
        print_json({
            "action": "undo" if undo else "setup", "dry_run": dry_run,
            "parts": {part.name: names for part, names in choice if names},
            "files": [_json_edit(part, edit) for part, edit in edits],
        })  # fmt: skip


def _recorded(parts: Iterable[SetupPart], record: SetupRecord) -> list[ChosenPart]:
    """Return the parts that were set up, and for which agents, as far as this version knows them."""
    recorded = record.read()
    choice: list[ChosenPart] = []
    for part in parts:
        names = recorded.get(part.name, [])
        choice.append(ChosenPart(part, list(filter(part.knows, names))))
        for name in names:
            if not part.knows(name):
                note(f"{part.name} of {name}: another version of turnlog set this up, and takes it back")
    return choice


def _planned(chosen: ChosenPart, *, is_undo: bool) -> list[PlannedEdit]:
    """Return the changes of files for a part."""
    part, names = chosen
    if not names:
        return []
    edits = part.plan_undo(names) if is_undo else part.plan(names)
    return [PlannedEdit(part, edit) for edit in edits if edit.is_change]


def _carry_out(choice: list[ChosenPart], record: SetupRecord, *, is_undo: bool) -> None:
    if not is_undo:
        record.add({part.name: part.not_set_up(names) for part, names in choice if names})
    for part, names in choice:
        if names and is_undo:
            part.undo(names)
        elif names:
            part.apply(names)
    if is_undo:
        record.remove({part.name: names for part, names in choice})
    tell("done; `turnlog setup --undo` takes it back" if not is_undo else "done: as it was")


def _chosen(
    parts: list[SetupPart], agents: Sequence[str], wanted: dict[str, bool | None], *, is_decided: bool, as_json: bool
) -> list[ChosenPart]:
    """Return the parts that are wanted, and for which agents. What the options leave open is asked, all at once."""
    available = {part.name: part.available() for part in parts}
    agents_here = sorted({name for part in parts if part.is_for_agents for name in available[part.name]})
    unknown = [name for name in agents if name not in agents_here]
    if unknown:
        raise NotFound(f"no agent {unknown[0]!r:.80} is here", hint=f"there are {', '.join(agents_here) or 'none'}")
    if not is_decided:
        hint = "`turnlog setup --dry-run` shows it all, `turnlog setup --yes` does it; --no-hooks, --no-mcp, --no-keep"
        hint = f"{hint} and --no-completion leave a part out"
        refuse_without_terminal("setup asks what you want", as_json=as_json, hint=hint)
    chosen = list(agents) or agents_here
    if not is_decided and not agents and agents_here:
        chosen = _ask_agents(agents_here)
    choice: list[ChosenPart] = []
    for part in parts:
        names = [name for name in available[part.name] if not part.is_for_agents or name in chosen]
        answer = wanted[part.name]
        if answer and not names:
            raise NotFound(f"--{part.name} has nothing to be set up for here", hint="`turnlog formats` lists agents")
        is_wanted = answer if answer is not None else bool(names) and (is_decided or ask(part.question, default=True))
        choice.append(ChosenPart(part, names if is_wanted else []))
    return choice


def _ask_agents(here: list[str]) -> list[str]:
    """Ask for which of these agents the parts are to be set up."""
    typed = ask_words(f"Here are {', '.join(here)}. Which of them? [all]").replace(",", " ").split()
    unknown = [name for name in typed if name not in (*here, "all", "none", "no")]
    if unknown:
        raise NotFound(f"no agent {unknown[0]!r:.80} is here", hint=f"there are {', '.join(here)}; `all`, or `none`")
    return here if not typed or "all" in typed else [name for name in here if name in typed]


def _refuse_unasked(*, is_undo: bool, yes: bool, as_json: bool) -> None:
    if not yes:
        what = "setup --undo" if is_undo else "setup"
        hint = f"`turnlog {what} --yes` does it without asking, `--dry-run` only shows it"
        refuse_without_terminal(f"{what} asks before it changes anything", as_json=as_json, hint=hint)


def _print_edits(choice: list[ChosenPart], edits: list[PlannedEdit], *, is_undo: bool) -> None:
    """Print every edit, before it is made."""
    for part, names in choice:
        if not names:
            continue
        print(coloured(f"{part.name}: {', '.join(names)}", "bold", sys.stdout))
        edits_of_part = [edit for owner, edit in edits if owner is part]
        for edit in edits_of_part:
            print("  " + one_line(f"{tilde(edit.path)} is {edit.change}"))
            for line in difference(edit):
                print(f"  {line}")
        if not edits_of_part:
            print("  no file has to be changed")
        for text in part.notes(names) if not is_undo else ():
            print("  " + coloured(one_line(text), "dim", sys.stdout))
    if not any(names for _, names in choice):
        singly = "what was set up singly goes with `turnlog hooks uninstall --all` and `turnlog keep --stop`"
        print(f"nothing was set up here; {singly}" if is_undo else "nothing to set up")


def _question(edits: list[PlannedEdit]) -> str:
    files = len({edit.path for _, edit in edits})
    return f"Change {count(files, 'file')}?" if files else "Do it?"


def _json_edit(part: SetupPart, edit: FileEdit) -> dict[str, str]:
    return {"part": part.name, **json_edit(edit)}
