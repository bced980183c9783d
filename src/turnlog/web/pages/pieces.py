"""What a page of a session asks for while it is read: pieces, places, the outline, agents, pictures, news."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from turnlog.catalog.ask.query import Filter, parse
from turnlog.errors import Invalid, TurnlogError
from turnlog.log.payload import digest_key
from turnlog.session.comparison import files_of
from turnlog.view.comparison import changed
from turnlog.view.visible import quoted
from turnlog.web.drawn import articles
from turnlog.web.frame import button
from turnlog.web.pages.session import can_write, outline_around, talk_in, unknown_turns
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.reader.desk import LookedAt

_MOST = 120
"""The maximum number of pieces in one answer."""
_HITS = 500
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)  # fmt: skip


def rows(request: Request) -> Response:
    """Pieces to be put into the page."""
    viewer = viewer_of(request)
    looked = viewer.open(name_in(request))
    with looked.mutex:
        talk = talk_in(looked, request)
        first, end = (_number(request.query_params.get(key, "")) for key in ("first", "end"))
        end = min(end, first + _MOST, len(talk))
        drawn = articles(
            looked, first, end, query=request.query_params.get("q", ""), can_fork=can_write(viewer, looked.card),
            is_redacted=request.query_params.get("redact") == "1", pieces=talk,
        )  # fmt: skip
        told = {"X-First": str(first), "X-End": str(end), "X-Total": str(len(talk)), "X-Version": str(looked.version)}
    return HTMLResponse(drawn, headers=told)


def place(request: Request) -> Response:
    """In which piece an entry is."""
    looked = viewer_of(request).open(name_in(request))
    with looked.mutex:
        talk = talk_in(looked, request)
        at = looked.find(request.query_params.get("at", ""))
        return JSONResponse({"piece": talk.position(at), "total": len(talk), "is_here": talk.has(at)})


def outline(request: Request) -> Response:
    """The outline around a piece, with what each prompt changed: to find that out takes longer than to open a page."""
    viewer = viewer_of(request)
    looked = viewer.open(name_in(request))
    first = _number(request.query_params.get("first", ""))
    with looked.mutex:
        turns = _ended(looked, unknown_turns(looked, talk_in(looked, request), first))
    told = _changed(viewer, looked, turns) if turns else {}
    with looked.mutex:
        looked.changed |= told
        is_redacted = request.query_params.get("redact") == "1"
        return HTMLResponse(outline_around(viewer, looked, talk_in(looked, request), first, is_redacted=is_redacted))


def _ended(looked: LookedAt, turns: set[str]) -> set[str]:
    """Those of these turns that are over: what they changed stays as it is."""
    outline = looked.pieces.outline
    ends = (index for index, kind in enumerate(outline.kinds) if kind == "turn") if turns else ()
    return {outline.turns[index] for index in ends if outline.labels.get(outline.seqs[index]) != "begin"} & turns


def _changed(viewer: Viewer, looked: LookedAt, turns: set[str]) -> dict[str, str]:
    """What each of these did to files, in words."""
    try:
        with viewer.home.read(looked.card.id) as session:  # one of its own: who reads further does not wait
            changes = session.changes(turns)
    except TurnlogError:
        changes = {}  # the page about changes says what is wrong with them
    return {turn: changed(files_of([changes[turn]])) if changes.get(turn) else "" for turn in turns}


def hits(request: Request) -> Response:
    """The pieces in which words are, oldest first."""
    viewer = viewer_of(request)
    looked = viewer.open(name_in(request))
    query = request.query_params.get("q", "").strip()
    if not query:
        return JSONResponse([])
    found = viewer.catalog.search(str(parse(query).within(Filter("session", (looked.card.id,)))), limit=_HITS)
    with looked.mutex:
        talk = talk_in(looked, request)
        seqs = [hit.seq or (looked.foreign.find(hit.entry) or 0 if looked.foreign else 0) for hit in found if hit.entry]
        return JSONResponse(sorted({talk.position(seq) for seq in seqs if seq and talk.has(seq)}))


def agents(request: Request) -> Response:
    """Every other agent that can go on with a session. The page asks when its menu opens: this loads every format."""
    from turnlog.formats import every

    card = viewer_of(request).card(name_in(request))
    names = [name for name, form in every() if form.write is not None and form.resume is not None]
    return HTMLResponse(
        "".join(
            f"<li>{button(name, 'copy', command=f'turnlog resume {quoted(card.name)} --in {name} --exec')}</li>"
            for name in names
            if name != card.agent
        )
    )


async def stream(request: Request) -> Response:
    """Tells what is new."""
    since = request.headers.get("last-event-id") or request.query_params.get("since", "")
    viewer = viewer_of(request)
    number = int(since) if since.isdecimal() and len(since) < 20 else None
    return StreamingResponse(viewer.streams.listen(name_in(request), number), media_type="text/event-stream")


def blob(request: Request) -> Response:
    """A picture, after a look at its first bytes; anything else is a download."""
    digest = str(request.path_params["digest"])
    digest_key(digest)
    looked = viewer_of(request).open(name_in(request))
    with looked.mutex:
        data = looked.blob(digest)
    kind = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "")
    kind = "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else kind
    if kind:
        return Response(data, media_type=kind)
    return Response(data, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"})


def _number(word: str) -> int:
    if not word.isdecimal() or len(word) > 12:
        raise Invalid(f"{word!r:.40} is no number of a piece")
    return int(word)


ROUTES = [
    Route("/s/{name}/rows", rows),
    Route("/s/{name}/place", place),
    Route("/s/{name}/outline", outline),
    Route("/s/{name}/hits", hits),
    Route("/s/{name}/agents", agents),
    Route("/s/{name}/stream", stream),
    Route("/s/{name}/blob/{digest}", blob),
]
