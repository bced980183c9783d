"""What commands print with `--json` is what `turnlog api` says they print: for every call of every test."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from turnlog.cli.frame.arguments import parsed
from turnlog.cli.frame.commandlist import get_command
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.interface import described
from turnlog.cli.program import PROGRAM


def exact(schema: dict[str, Any], *, is_selected: bool = False) -> dict[str, Any]:
    """The same schema, where no other field may stand. After `--fields`, any may be missing."""
    stricter = dict(schema)
    if "properties" in stricter:
        fields = stricter["properties"].items()
        stricter["properties"] = {name: exact(inner, is_selected=is_selected) for name, inner in fields}
        stricter["additionalProperties"] = False
        stricter["required"] = [] if is_selected else stricter.get("required", [])
    if "items" in stricter:
        stricter["items"] = exact(stricter["items"], is_selected=is_selected)
    return stricter


@cache
def _validator(name: str, is_selected: bool) -> Any:
    schema = described(name)["json"]
    Draft202012Validator.check_schema(schema)
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator(exact(schema, is_selected=is_selected), format_checker=checker)


def check_document(name: str, document: Any, *, is_selected: bool = False) -> None:
    """Assert that a document of this command has the fields of its schema, and no others."""
    errors = _validator(name, is_selected).iter_errors(document)
    problems = "\n".join(f"{error.json_path}: {error.message:.200}" for error in errors)
    assert not problems, problems


def check_output(words: Sequence[str], output: str) -> None:
    """Assert that of whatever a command printed with `--json`, where these words ask for that."""
    words = [str(word) for word in words]
    if not output.strip() or not {"--json", "--jsonl"} & set(words):
        return
    try:
        name, *rest = parsed(PROGRAM, words)["words"]
        command = get_command(name)
        options = parsed(command, rest)
    except (UsageError, ValueError):
        return
    if options.get("help") or not (options["as_json"] or options.get("jsonl")) or not command.module.FIELDS:
        return
    name = command.path.rpartition(" ")[2]
    text = output.partition("\n")[0] if name == "watch" else output
    check_document(name, json.loads(text), is_selected=options["fields"] is not None)
