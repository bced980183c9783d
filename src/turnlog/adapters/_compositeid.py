"""Ids of sessions for what a framework names by several ids."""

from __future__ import annotations


def join_parts(*parts: str) -> str:
    """The session's id for an id of several parts: joined by `/`, so that no two are the same."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def split_parts(session_id: str) -> list[str]:
    """The parts that `join_parts` was given."""
    return [part.replace("%2F", "/").replace("%25", "%") for part in session_id.split("/")]
