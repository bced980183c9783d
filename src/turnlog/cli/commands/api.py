"""`turnlog api`."""

from __future__ import annotations

from typing import Any

from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.pager import paged

GROUP = "Care", 20
CHANGES = shape.NOTHING
_TAKEN = {"type": shape.text(), "choices": shape.texts(null=True)}
_COMMAND = {
    "name": shape.text(),
    "summary": shape.text(),
    "arguments": shape.each(
        "in order of position", {"name": shape.text(), **_TAKEN, "required": shape.flag(), "repeatable": shape.flag()}
    ),
    "options": shape.each(
        "in any order",
        {
            "flags": shape.texts(),
            **_TAKEN,
            "value": shape.text("the name of its value; null for a flag", null=True),
            "default": shape.anything(),
            "required": shape.flag(),
            "repeatable": shape.flag(),
            "meaning": shape.text(),
        },
    ),
    "examples": shape.each("how to call it", {"command": shape.text(), "meaning": shape.text()}),
    "changes": shape.text("`nothing`, `the log`, `the workspace` or `files of other agents`"),
    "json": shape.one("the JSON Schema of its `--json`; null if it has none", null=True),
}
FIELDS = {
    "[commands]": shape.items("every command; with a COMMAND, its fields are the document", _COMMAND),
    **{f"[{name}]": field for name, field in _COMMAND.items()},
    "[exit_codes]": shape.each(
        "how a command may end", {"code": shape.number(), "name": shape.text(), "meaning": shape.text()}
    ),
    "[environment]": shape.each("variables that are read", {"name": shape.text(), "meaning": shape.text()}),
    "[filters]": shape.each(
        "for `ls`, `search` and `usage`", {"name": shape.text(), "example": shape.text(), "meaning": shape.text()}
    ),
    "[guide]": shape.text("with --guide: the guide, and nothing else"),
}


@declare(
    Argument("name", "[COMMAND]", kind="command"),
    Option("--guide", "A page for an agent, short enough for its instructions."),
    Option("--as", "With --guide: with the header of a skill file.", name="form", choices=("skill",)),
)
def command(name: str | None, guide: bool, form: str | None, as_json: bool) -> None:
    """Describe this command line to programs. It lists commands, options, JSON, exit codes, environment and filters.

    With --json, each command has its arguments, options, examples, what it changes (nothing, the log, the workspace,
    files of other agents), and the JSON Schema of what it prints with --json. Without it, prints a page to read.

    \b
    turnlog api                              all of it, as a page
    turnlog api search --json                one command
    turnlog api --json --fields name,summary all commands
    turnlog api --guide                      for the instructions of an agent
    turnlog api --guide --as skill           the same as a skill file
    """
    from turnlog.cli.frame.commandlist import get_command
    from turnlog.cli.frame.exitcode import UsageError

    if (guide and name is not None) or (form is not None and not guide):
        raise UsageError("--guide is about all commands, and --as is for --guide", hint="`turnlog api --help`")
    if name is not None:
        name = get_command(name).path.rpartition(" ")[2]
    if as_json:
        print_json(_document(name, form, is_guide=guide))
        return
    with paged(is_wanted=not guide) as out:
        out.write(_page(name, form, is_guide=guide))


def _document(name: str | None, form: str | None, *, is_guide: bool) -> dict[str, Any]:
    from turnlog.cli import interface

    if is_guide:
        return {"guide": _page(name, form, is_guide=True)}
    if name is not None:
        return interface.described(name)
    from turnlog.cli.frame.commandlist import command_names

    variables = [{"name": variable, "meaning": meaning} for variable, meaning in interface.ENVIRONMENT.items()]
    return {
        "commands": [interface.described(one) for one in command_names()],
        "exit_codes": list(interface.exit_codes()),
        "environment": variables,
        "filters": list(interface.filters()),
    }


def _page(name: str | None, form: str | None, *, is_guide: bool) -> str:
    if is_guide:
        from turnlog.cli.guide import GUIDE, HEAD

        return HEAD + GUIDE if form == "skill" else GUIDE
    from turnlog.cli.reference import reference, section

    return reference() if name is None else "\n".join(section(name)) + "\n"
