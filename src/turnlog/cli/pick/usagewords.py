"""The words behind `turnlog usage`: what is added up by, and filters."""

from __future__ import annotations

from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import home_location
from turnlog.cli.pick.catalog import open_catalog
from turnlog.cli.pick.query import query_of
from turnlog.errors import Invalid

BY = ("day", "week", "month", "session", "model", "workspace", "agent", "user", "machine", "block")
TIMES = (*BY[:3], "block")
_WORDS = {
    "daily": "day", "weekly": "week", "monthly": "month", "sessions": "session", "models": "model",
    "project": "workspace", "projects": "workspace", "workspaces": "workspace", "agents": "agent", "users": "user",
    "machines": "machine", "blocks": "block",
}  # fmt: skip


def grouping_and_query(by: str | None, words: tuple[str, ...]) -> tuple[list[str], str]:
    """Return what is added up by, and the query of the other words. Without `--by`, a word may say it."""
    if by is None:
        by = next((word for word in words if all(_kind(part) in BY for part in word.split(","))), None)
        at = len(words) if by is None else words.index(by)
        words = words[:at] + words[at + 1 :]
    kinds = _kinds(by or "day")
    query = query_of(words)
    _refuse_words(query)
    return kinds, query


def _kind(word: str) -> str:
    return _WORDS.get(word, word)


def _kinds(by: str) -> list[str]:
    kinds = [_kind(word) for word in by.split(",")]
    unknown = next((word for word in kinds if word not in BY), None)
    if unknown is not None:
        raise UsageError(f"invalid value for '--by': {unknown!r:.40} is not one of {', '.join(BY)}, project")
    if "block" in kinds and len(kinds) > 1:
        raise UsageError(f"--by {by:.80}: a block is of one agent already, and goes with nothing else")
    return kinds


def _refuse_words(query: str) -> None:
    """Refuse a bare word: a sum over sessions that contain it is hardly ever meant. The error names the filter."""
    from turnlog.catalog.ask.query import parse

    term = next(iter(parse(query).every_term), None)
    if term is None:
        return
    import shlex
    from difflib import get_close_matches

    word = term.text
    if word == "by":
        raise Invalid("usage takes filters, and 'by' is none", hint="`turnlog usage --by WHAT`?")
    near = () if _is_time(word) else get_close_matches(word, (*_WORDS, *BY), n=1, cutoff=0.75)
    form = shlex.join(["turnlog", "usage", near[0] if near else _filter_for(word)])
    hint = f"`{form}`? `{shlex.join(['turnlog', 'search', word])}` finds what was said"
    raise Invalid(f"usage takes filters, and {word!r:.60} is none", hint=hint)


def _filter_for(word: str) -> str:
    """The filter that is probably meant by a bare word."""
    from turnlog.formats import is_known, names

    if is_known(word) or any(name.startswith(word.lower()) for name in names()):
        return f"agent:{word.lower()}"
    if _is_time(word):
        return f"since:{word}"
    models = ("claude", "opus", "sonnet", "haiku", "gpt", "gemini", "o3", "o4", "qwen", "kimi", "glm", "deepseek")
    if word.lower().startswith(models):
        return f"model:{word}"
    name = "workspace" if "/" in word else "session" if _is_session(word) else "title"
    return f"{name}:{word}"


def _is_time(word: str) -> bool:
    from datetime import UTC, datetime

    from turnlog.catalog.ask.moment import moment

    try:
        moment(word, now=datetime.now(UTC))
    except Invalid:
        return False
    return True


def _is_session(word: str) -> bool:
    if not word.replace("-", "").isalnum():
        return False
    with open_catalog(home_location()) as catalog:
        return bool(catalog.lines(f"session:{word}", everything=True))
