"""A session written for people and programs: Markdown, HTML, JSON, spans; without its secrets unless asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from turnlog.catalog.waiter import while_wanted
from turnlog.errors import Unsupported
from turnlog.log.codec import body_text
from turnlog.log.context import Context
from turnlog.log.entry import AnyEntry, Checkpoint, Fold, Intent, Message, Start, Writer
from turnlog.log.plainjson import json_bytes
from turnlog.log.prompt import preview_of
from turnlog.log.prompt.promptmessage import is_prompt, label_of
from turnlog.reader.part import Part
from turnlog.session.document import Document
from turnlog.view.number import count, used
from turnlog.view.time import minute

if TYPE_CHECKING:
    from turnlog.aio import Home as AsyncHome
    from turnlog.formats import TouchedFile, Transcript
    from turnlog.reader.opening.opener import OpenedSession
    from turnlog.session.home import Home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.view.secret.redactor import Redactor

VERSION = 1
"""Of the JSON: it grows when a field changes its meaning or goes away."""
ENDINGS = {"markdown": "md", "html": "html", "json": "json", "jsonl": "jsonl", "otel": "otlp.jsonl"}
_OURS = (Writer, Fold, Checkpoint, Intent)
"""Only means something in the log it is in."""


def export(home: Home | AsyncHome, session: str, form: str, *, redact: bool = True, content: bool = False) -> Document:
    """A session by its id as one document, for people (`html`, `markdown`) or for programs (`json`, `jsonl`, `otel`).

    Keys, tokens and passwords are taken out unless `redact=False`; `redacted` says how many of which kind. Nothing is
    locked or written. `otel` is OpenTelemetry's spans, each line a request that a collector takes at `/v1/traces`; what
    was said is in them only with `content=True`. A session that is open gives the same by `session.export("html")`.
    """
    from turnlog.aio.home import blocking_home

    if form not in ENDINGS:
        raise Unsupported(
            f"no document {form!r:.40}", hint=f"one of {', '.join(ENDINGS)}; session.export writes for other agents"
        )
    holder = blocking_home(home)
    with holder.read(session) as read_only:
        return document_of(holder, read_only, form, redact=redact, content=content)


def document_of(home: Home, session: ReadOnlySession, form: str, *, redact: bool, content: bool) -> Document:
    """What `session.export` gives, which finds this by its name."""
    from turnlog.reader.opening.opener import OpenedSession

    return write(OpenedSession(home, session), form, is_redacted=redact, has_content=content)


def write(
    opened: OpenedSession, form: str, *, is_redacted: bool, also: Collection[str] = (), has_content: bool = False
) -> Document:
    """The session in that form; `also` of `view.personal.KINDS` is taken out with its secrets.

    `has_content` is for spans, which are without what was said unless asked for.
    """
    from turnlog.view.secret.redactor import Redactor  # to know every secret takes longer than to show a session

    redactor = Redactor(also) if is_redacted else None
    if form == "otel":
        from turnlog.reader.export.otel.telemetry import lines

        data = b"".join(line + b"\n" for line in lines(opened, redactor, has_content=has_content))
        return Document(data, _redaction_counts(redactor))
    if redactor is not None:
        redactor.learn_value(opened.session.workspace or "")
        for entry in _entries(opened):
            redactor.learn(entry)
    prompts: list[tuple[int, str]] = []
    is_data = form in ("json", "jsonl")
    body = list(while_wanted(_lines(opened, redactor) if is_data else _text(opened, form, redactor, prompts)))
    about = _about(opened, redactor)
    redacted = _redaction_counts(redactor)
    if is_data:
        data = _for_programs(form, {**about, "redacted": redacted}, body)
    else:
        data = _for_people(form, opened, about, notice(redacted), prompts) + b"".join(body)
    return Document(data, redacted)


def _redaction_counts(redactor: Redactor | None) -> dict[str, int] | None:
    return None if redactor is None else dict(sorted(redactor.counts.items()))


def notice(redacted: dict[str, int] | None) -> str:
    """What is said about secrets, in the document and on stderr."""
    if redacted is None:
        return "Not redacted: keys, tokens and passwords stand here as they were in the session."
    if not redacted:
        return "Looked through for keys, tokens and passwords: none was found. That is no proof that there is none."
    from turnlog.view.secret.redactor import in_words

    return f"Redacted: {in_words(Counter(redacted))}. What else is secret stands here as it was in the session."


def _entries(opened: OpenedSession) -> Iterator[AnyEntry]:
    return (entry for entry in while_wanted(opened.session.entries()) if not isinstance(entry, _OURS))


def without_secrets(transcript: Transcript, redactor: Redactor) -> Transcript:
    """A session for another agent's writer, with its secrets taken out wherever they stand."""
    for entry in transcript.entries():
        redactor.learn(entry)
    clean = [redactor.entry(entry) for entry in transcript.entries()]
    counted = Counter(redactor.counts)
    context = transcript.context
    messages = [cast("Message", redactor.entry(message)) for message in context.messages]
    seen = Context(
        messages, system=redactor.text(context.system), tools=redactor.value(context.tools), get_blob=context.get_blob
    )
    redacted = replace(
        transcript,
        start=cast("Start", redactor.entry(transcript.start)),
        origin=redactor.value(transcript.origin),
        title=None if transcript.title is None else redactor.text(transcript.title),
        facts=redactor.value(transcript.facts),
        path=[redactor.entry(entry) for entry in transcript.path],
        entries=lambda: clean,
        files=partial(_clean_files, transcript, redactor),
        context=seen,
    )
    redactor.counts = counted  # each was counted once already
    return redacted


def _clean_files(transcript: Transcript, redactor: Redactor, after: int) -> list[TouchedFile]:
    return [_clean(file, redactor) for file in transcript.files(after)]


def _clean(file: TouchedFile, redactor: Redactor) -> TouchedFile:
    """What is no text goes to no agent, and stays as it is."""
    try:
        before, after = (None if data is None else data.decode() for data in (file.before, file.after))
    except UnicodeDecodeError:
        return file
    texts = [None if text is None else redactor.text(text).encode() for text in (before, after)]
    return replace(file, before=texts[0], after=texts[1])


# ── for programs ──────────────────────────────────────────────────────────────────────────────────


def _lines(opened: OpenedSession, redactor: Redactor | None) -> Iterator[bytes]:
    for entry in _entries(opened):
        plain = msgspec.json.decode(body_text(entry))
        yield json_bytes(plain if redactor is None else redactor.value(plain))


def _for_programs(form: str, about: dict[str, Any], lines: list[bytes]) -> bytes:
    first = json_bytes({"version": VERSION, **about})
    if form == "jsonl":
        return b"\n".join([first, *lines, b""])
    return first[:-1] + b',"entries":[\n' + b",\n".join(lines) + b"\n]}\n"


def _about(opened: OpenedSession, redactor: Redactor | None) -> dict[str, Any]:
    session = opened.session
    stats, usage = session.stats(), session.usage()
    about = {
        "session": session.id,
        "title": session.title,
        "agent": session.agent,
        "workspace": session.workspace,
        "labels": session.labels,
        "source": opened.source,
        "created_at": stats.first_at,
        "updated_at": stats.last_at,
        "head": session.head,
        "messages": stats.messages,
        "turns": stats.turns,
        "usage": {"own": usage.own, "inherited": usage.inherited, "subagents": usage.subagents},
    }
    return about if redactor is None else redactor.value(msgspec.to_builtins(about))


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _text(
    opened: OpenedSession, form: str, redactor: Redactor | None, prompts: list[tuple[int, str]]
) -> Iterator[bytes]:
    """The conversation; what was asked in it, and where, comes into `prompts` on the way."""
    from turnlog.view.cost import Costs
    from turnlog.view.html import page
    from turnlog.view.markdown import document
    from turnlog.view.rowmaker import Rows

    entries = Part(opened.session.head).entries(opened.session)
    if redactor is not None:
        entries = map(redactor.entry, entries)
    rows = Rows(price=Costs(), size=opened.blob_size).paired(_noted(entries, prompts))
    for part in page.parts(rows) if form == "html" else document.parts(rows):
        yield part.encode("utf-8", "backslashreplace")
    if form == "html":
        yield page.FOOT.encode()


def _noted(entries: Iterable[AnyEntry], prompts: list[tuple[int, str]]) -> Iterator[AnyEntry]:
    for entry in entries:
        if isinstance(entry, Message) and is_prompt(entry):
            prompts.append((entry.seq, label_of(entry)))
        yield entry


def _for_people(
    form: str, opened: OpenedSession, about: dict[str, Any], notice_text: str, prompts: list[tuple[int, str]]
) -> bytes:
    """The beginning, up to where the conversation goes."""
    from turnlog.view.html import page
    from turnlog.view.markdown import document

    session = opened.session
    usage = session.usage().total
    facts = [
        opened.name,
        (about["agent"] or "") if opened.source is None else "",
        _moment(session.stats().first_at),
        count(about["messages"], "message"),
        count(about["turns"], "turn"),
        used(usage) if usage.all_input_tokens else "",
        opened.spent(),
        about["workspace"] or "",
    ]
    title = str(about["title"] or "") or next(filter(None, (preview_of(text) for _, text in prompts)), "(no title)")
    heading = (
        page.head(title, facts, notice_text, prompts) if form == "html" else document.head(title, facts, notice_text)
    )
    return heading.encode("utf-8", "backslashreplace")


def _moment(at: datetime | None) -> str:
    return f"{minute(at)} UTC" if at is not None else ""
