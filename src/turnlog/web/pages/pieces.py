"""What a page of a session asks for while it is read: pieces, places, the outline, agents, pictures, news."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from turnlog.catalog.ask.query import Filter, parse
from turnlog.errors import Invalid, TurnlogError
from turnlog.log.payload import digest_key
from turnlog.reader.part import numbered
from turnlog.session.comparison.changedfile import files_of
from turnlog.view.comparison import change_counts
from turnlog.view.visible import quoted
from turnlog.web.article import articles
from turnlog.web.element import button
from turnlog.web.outline import outline_around, unknown_turns
from turnlog.web.query import query_of
from turnlog.web.stream import version_in
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.reader.viewing.viewedsession import ViewedSession

_MOST = 120
"""The maximum number of pieces in one answer."""
_HITS = 20_000
"""The maximum number of places that are found in a session, the newest first."""
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)  # fmt: skip


def rows(request: Request) -> Response:
    """Pieces to be put into the page."""
    viewer = viewer_of(request)
    viewed, query = viewer.open(name_in(request)), query_of(request)
    with viewed.mutex:
        pieces = query.pieces_of(viewed)
        first, end = (_number(request.query_params.get(key, "")) for key in ("first", "end"))
        end = min(end, first + _MOST, len(pieces))
        html = articles(viewed, query, pieces, first, end, can_fork=viewer.can_change(viewed.card))
        total = len(pieces)
    return HTMLResponse(html, headers={"X-Total": str(total)})


def place(request: Request) -> Response:
    """In which piece an entry is."""
    viewed = viewer_of(request).open(name_in(request))
    with viewed.mutex:
        pieces = query_of(request).pieces_of(viewed)
        at = viewed.find(request.query_params.get("at", ""))
        return JSONResponse({"piece": pieces.position(at), "total": len(pieces), "is_here": pieces.has(at)})


def outline(request: Request) -> Response:
    """The outline around a piece, with what each prompt changed: to find that out takes longer than to open a page."""
    viewer = viewer_of(request)
    viewed, query = viewer.open(name_in(request)), query_of(request)
    first = _number(request.query_params.get("first", ""))
    with viewed.mutex:
        turns = _ended(viewed, unknown_turns(viewed, query.pieces_of(viewed), first))
    changes = _changed(viewer, viewed, turns) if turns else {}
    with viewed.mutex:
        viewed.add_file_changes(changes)
        return HTMLResponse(outline_around(viewer, viewed, query, query.pieces_of(viewed), first))


def _ended(viewed: ViewedSession, turns: set[str]) -> set[str]:
    """Those of these turns that are over: what they changed stays as it is."""
    outline = viewed.pieces.outline
    ends = (index for index, kind in enumerate(outline.kinds) if kind == "turn") if turns else ()
    return {outline.turns[index] for index in ends if outline.labels.get(outline.seqs[index]) != "begin"} & turns


def _changed(viewer: Viewer, viewed: ViewedSession, turns: set[str]) -> dict[str, str]:
    """What each of these did to files, in words."""
    try:
        with viewer.home.read(viewed.card.id) as session:  # one of its own, so that readers of the page do not wait
            changes = session.changes(turns)
    except TurnlogError:
        changes = {}  # the page about changes says what is wrong with them
    return {turn: change_counts(files_of([changes[turn]])) if changes.get(turn) else "" for turn in turns}


def hits(request: Request) -> Response:
    """The pieces in which words are, oldest first."""
    viewer = viewer_of(request)
    viewed = viewer.open(name_in(request))
    query = request.query_params.get("q", "").strip()
    if not query:
        return JSONResponse([])
    hits = viewer.catalog.search(str(parse(query).within(Filter("session", (f"={viewed.card.name}",)))), limit=_HITS)
    with viewed.mutex:
        pieces = query_of(request).pieces_of(viewed)
        seqs = [hit.seq or viewed.source.find(hit.entry) or 0 for hit in hits if hit.entry]
        return JSONResponse(sorted({pieces.position(seq) for seq in seqs if seq and pieces.has(seq)}))


def agents(request: Request) -> Response:
    """Every other agent that can go on with a session. The page asks when its menu opens: this loads every format."""
    from turnlog.formats import every

    card = viewer_of(request).desk.card(name_in(request))
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
    return StreamingResponse(viewer.streams.listen(name_in(request), version_in(since)), media_type="text/event-stream")


def blob(request: Request) -> Response:
    """A picture, after a look at its first bytes; anything else is a download."""
    digest = str(request.path_params["digest"])
    digest_key(digest)
    viewed = viewer_of(request).open(name_in(request))
    with viewed.mutex:
        data = viewed.blob(digest)
    kind = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "")
    kind = "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else kind
    if kind:
        return Response(data, media_type=kind)
    return Response(data, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"})


def _number(word: str) -> int:
    number = numbered(word)
    if number is None:
        raise Invalid(f"{word!r:.40} is no number of a piece")
    return number


ROUTES = [
    Route("/s/{name}/rows", rows),
    Route("/s/{name}/place", place),
    Route("/s/{name}/outline", outline),
    Route("/s/{name}/hits", hits),
    Route("/s/{name}/agents", agents),
    Route("/s/{name}/stream", stream),
    Route("/s/{name}/blob/{digest}", blob),
]
