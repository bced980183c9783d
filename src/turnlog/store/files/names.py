"""Session ids as file names: unique, even if the file system folds case or normalises names."""

from __future__ import annotations

from turnlog.errors import Invalid
from turnlog.log.ids import word

SUFFIX = ".jsonl"
_TEMPORARY = ".new-"
_WORD = 16
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 180
_MAX_ID = 4096


def file_name(session_id: str) -> str:
    """Return the name of a session's file. It consists of a–z, 0–9, `_`, `-`, `=`, `~` and the suffix."""
    if not isinstance(session_id, str) or not 0 < len(session_id) <= _MAX_ID:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the session id {session_id!r:.60} is not a text of 1 to {_MAX_ID} characters")
    if len(session_id) <= _LONGEST and _PLAIN.issuperset(session_id):
        return session_id + SUFFIX
    try:
        data = session_id.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the session id {session_id!r:.60} is not Unicode") from None
    name = "".join(chr(b) if chr(b) in _PLAIN else f"={b:02x}" for b in data)
    if len(name) > _LONGEST:
        from turnlog.log.digest import sha256

        name = "~" + sha256(data).hexdigest()
    return name + SUFFIX


def session_id_of(name: str) -> str | None:
    """Return the session id of a file name; None for a hashed name (line 1 has the id) or a foreign file."""
    if not name.endswith(SUFFIX) or name.startswith(("~", ".")):
        return None
    parts = name[: -len(SUFFIX)].split("=")
    try:
        data = parts[0].encode() + b"".join(bytes.fromhex(p[:2]) + p[2:].encode() for p in parts[1:])
        session_id = data.decode()
    except ValueError:
        return None
    return session_id if session_id and file_name(session_id) == name else None


def is_hashed(name: str) -> bool:
    """Whether this is a hashed name, for a session id that is too long for a file name."""
    return len(name) == 65 + len(SUFFIX) and name.startswith("~") and name.endswith(SUFFIX) and name[1:65].isalnum()


def is_session_file(name: str) -> bool:
    """Whether a file with that name may be a session of ours."""
    return name.endswith(SUFFIX) and (name.startswith("~") or session_id_of(name) is not None)


def new_temporary_name() -> str:
    """Return a name for a file that gets its own name when it is complete."""
    return _TEMPORARY + word(_WORD)


def is_temporary(name: str) -> bool:
    """Whether `new_temporary_name` may have made that name."""
    return name.startswith(_TEMPORARY) and len(name) == len(_TEMPORARY) + _WORD and name[len(_TEMPORARY) :].isalnum()
