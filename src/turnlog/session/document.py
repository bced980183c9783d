"""A session as one document, for people or for programs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from turnlog.thread.reader import SessionReader

DocumentForm = Literal["html", "markdown", "json", "jsonl", "otel"]
FORMS: tuple[str, ...] = get_args(DocumentForm)
_WRITER = "turnlog.reader.document"
"""What draws a session stands above it, so it is found by its name, as formats and stores are."""


class Document(Struct, frozen=True):
    """The bytes, and what was taken out of them, by kind; None where nothing was looked for."""

    data: bytes
    redacted: dict[str, int] | None


def document_of(session: SessionReader, home: Any, form: str, *, redact: bool, content: bool) -> Document:
    """The session as a document in `form`."""
    return import_module(_WRITER).document_of(home, session, form, redact=redact, content=content)
