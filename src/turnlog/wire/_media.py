"""Images and files on their way to a provider: where their bytes are, and what they are."""

from __future__ import annotations

import re
from base64 import b64encode

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.interop.base64 import from_base64
from turnlog.log.block import File, Image
from turnlog.log.context import Context
from turnlog.log.startup import pattern

PDF = "application/pdf"
PICTURES = frozenset(("image/gif", "image/jpeg", "image/png", "image/webp"))
_SUFFIXES = {
    "css": "text/css", "csv": "text/csv", "gif": "image/gif", "heic": "image/heic", "heif": "image/heif",
    "htm": "text/html", "html": "text/html", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript",
    "json": "application/json", "md": "text/markdown", "mp3": "audio/mpeg", "mp4": "video/mp4", "pdf": PDF,
    "png": "image/png", "py": "text/x-python", "txt": "text/plain", "wav": "audio/wav", "webp": "image/webp",
    "xml": "text/xml", "yaml": "text/yaml", "yml": "text/yaml",
}  # fmt: skip
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
)
_SYNONYMS = {"image/jpg": "image/jpeg", "application/x-pdf": PDF, "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav"}
_TEXT_TYPES = pattern(r"text/.+|application/(json|javascript|sql|toml|x-sh|xml|yaml|x-yaml|.+\+(json|xml))")
_DATA_URL = pattern(r"data:([^;,]*)((?:;[^;,]*)*),(.*)", re.DOTALL)


class Media(Struct, frozen=True):
    """A picture or document that can be sent: one of `file` (the provider's own id), `data` and `url`."""

    media_type: str
    name: str | None = None
    file: str | None = None
    data: bytes | None = None
    url: str | None = None

    @property
    def base64(self) -> str:
        """Its bytes as text."""
        return b64encode(self.data or b"").decode()

    @property
    def data_url(self) -> str:
        """Its bytes as a URL."""
        return f"data:{self.media_type};base64,{self.base64}"

    @property
    def text(self) -> str | None:
        """What it says, if it is text."""
        if self.data is None or not _TEXT_TYPES.fullmatch(self.media_type):
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


class Unsendable(Struct, frozen=True):
    """Why a picture or document cannot be sent."""

    why: str


def load(
    block: Image | File, context: Context, provider: str, *, schemes: tuple[str, ...] = ("https://", "http://")
) -> Media | Unsendable:
    """The picture or document of a block. `schemes`: which URLs the provider follows."""
    if block.file is not None and block.provider == provider:
        return Media(_type_of(block, None), block.name, file=block.file)
    data, kind = block.data or None, block.media_type
    why = "it holds nothing"
    if data is None and block.blob is not None:
        why = "its blob is not at hand"
        if context.get_blob is not None:
            try:
                data = context.get_blob(block.blob)
            except TurnlogError as error:
                why = f"its blob cannot be read: {error.message}"
    if data is None and block.url is not None and block.url.startswith("data:"):
        why = "its URL cannot be read"
        data_url = _DATA_URL.fullmatch(block.url)
        if data_url is not None and ";base64" in data_url[2]:
            data, kind = from_base64(data_url[3]), kind or data_url[1] or None
    elif data is None and block.url is not None:
        why = "its URL is not one that a provider can follow"
        if block.url.startswith(schemes):
            return Media(_type_of(block, None), block.name, url=block.url)
    if not data:
        at_other = f"it is a file at {block.provider or 'an unnamed provider'}"
        return Unsendable(why if block.file is None else at_other)
    return Media(_clean(kind) or _type_of(block, data), block.name, data=data)


def _clean(kind: str | None) -> str:
    kind = (kind or "").partition(";")[0].strip().lower()
    return _SYNONYMS.get(kind, kind)


def _type_of(block: Image | File, data: bytes | None) -> str:
    declared = _clean(block.media_type)
    if declared:
        return declared
    if data is not None:
        for magic, kind in _MAGIC:
            if data.startswith(magic):
                return kind
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return "image/webp"
    for name in (block.name, (block.url or "").partition("?")[0].partition("#")[0]):
        kind = _SUFFIXES.get((name or "").rpartition(".")[2].lower())
        if kind is not None:
            return kind
    return ""
