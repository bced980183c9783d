"""A session as one document, for people or for programs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from turnlog.thread.reader import SessionReader

DocumentForm = Literal["html", "markdown", "json", "jsonl", "otel"]
FORMS: tuple[str, ...] = get_args(DocumentForm)
_WRITER = "turnlog.reader.export.document"
"""The name of the module, not an import: it is in a room above, and found by its name like formats and stores."""


class Document(Struct, frozen=True):
    """The bytes of a document, and how many secrets were redacted, by kind; None if nothing was to be redacted."""

    data: bytes
    redacted: dict[str, int] | None


def document_of(session: SessionReader, home: Any, form: str, *, redact: bool, content: bool) -> Document:
    """The session as a document in `form`."""
    return import_module(_WRITER).document_of(home, session, form, redact=redact, content=content)
