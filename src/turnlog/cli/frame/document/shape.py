"""What a command says with `--json`, field by field: for `--fields`, its schema and docs/cli.md. Imports nothing heavy.

Each command has its `FIELDS`. A name in brackets is a field that may be missing; `version` stands in every document,
and `left_out` and `cursor` beside every list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

NOTHING, LOG, WORKSPACE, OTHERS = "nothing", "the log", "the workspace", "files of other agents"
"""What a command may change, in rising order: its `CHANGES` is the highest that applies."""


class Field:
    """A field of a document: its kind, what it means, and what is in it."""

    def __init__(
        self,
        kind: str,
        meaning: str = "",
        *,
        null: bool = False,
        fields: Mapping[str, Field] | Callable[[], Mapping[str, Field]] | None = None,
        role: str = "",
    ) -> None:
        self.kind = kind
        """string, time, integer, number, boolean, object, list, strings, or any."""
        self.meaning = meaning
        self.null = null
        self._fields = fields
        self.role = role
        """`items`: the list that the document is about. `lines`: what follows it, a line each. `aside`: comes with
        `--fields` only where it is named."""

    @property
    def fields(self) -> Mapping[str, Field] | None:
        """What an object has, or each of a list; None where that is not said."""
        return self._fields() if callable(self._fields) else self._fields


Fields = Mapping[str, Field]


def text(meaning: str = "", *, null: bool = False) -> Field:
    """A text."""
    return Field("string", meaning, null=null)


def time(meaning: str = "", *, null: bool = False) -> Field:
    """A moment, as RFC 3339 writes it."""
    return Field("time", meaning, null=null)


def number(meaning: str = "", *, null: bool = False) -> Field:
    """A whole number."""
    return Field("integer", meaning, null=null)


def real(meaning: str = "", *, null: bool = False) -> Field:
    """Any number."""
    return Field("number", meaning, null=null)


def flag(meaning: str = "", *, null: bool = False) -> Field:
    """True or false."""
    return Field("boolean", meaning, null=null)


def texts(meaning: str = "", *, null: bool = False) -> Field:
    """A list of texts."""
    return Field("strings", meaning, null=null)


def anything(meaning: str = "") -> Field:
    """Any JSON."""
    return Field("any", meaning)


def one(meaning: str = "", fields: Fields | Callable[[], Fields] | None = None, *, null: bool = False) -> Field:
    """An object; with any names where no fields are said."""
    return Field("object", meaning, null=null, fields=fields)


def each(
    meaning: str = "", fields: Fields | Callable[[], Fields] | None = None, *, null: bool = False, role: str = ""
) -> Field:
    """A list of objects."""
    return Field("list", meaning, null=null, fields=fields, role=role)


def items(meaning: str, fields: Fields | Callable[[], Fields]) -> Field:
    """The list that a document is about: `--fields` names what is in it, `--max-bytes` cuts it."""
    return each(meaning, fields, role="items")


def bare(name: str) -> str:
    """The name of a field that may be missing, without its brackets."""
    return name.strip("[]")


def items_of(fields: Fields) -> dict[str, Field]:
    """The lists that a document may be about: there is one of them in it."""
    return {bare(name): field for name, field in fields.items() if field.role == "items"}


SESSION = text("the id of the session")
DRY_RUN = flag("whether nothing was done")
COUNTS = one("how many paths by action")
REPORT = one(
    "the result of writing it",
    {
        "carried": one(
            "how much; null if nothing was converted",
            {"messages": number(), "tool_calls": number(), "tool_results": number()},
            null=True,
        ),
        "changed": each("changed in the other format", {"what": text(), "[count]": number(), "[instead]": text()}),
        "lost": each("lost in the other format", {"what": text(), "[count]": number(), "[instead]": text()}),
        "notes": texts(),
    },
)
